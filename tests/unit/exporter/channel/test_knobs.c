#include "exporter/channel/knobs.h"

#include <errno.h>
#include <math.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/push/claim.h"
#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;
static struct knobs *knobs;
static struct push_owner *owner;
static struct knobs_link link_a, link_b;
static struct buf sent;

static const char *const modes[] = {"fast", "exact"};
static const struct knob_spec res = {
    .name = "res",
    .type = KNOB_INT,
    .initial = {.form = KNOB_NUMBER, .number = 720},
    .min = 240,
    .max = 1080,
};
static const struct knob_spec mode = {
    .name = "mode",
    .type = KNOB_ENUM,
    .initial = {.form = KNOB_TEXT, .text = "fast"},
    .min = -INFINITY,
    .max = INFINITY,
    .values = modes,
    .n_values = 2,
    .unit = "u",
    .help = "How.",
};

static void note_sent(struct knobs_link *link, const char *name, const struct knob_value *value) {
    buf_printf(&sent, "%c:%s=", link == &link_a ? 'a' : 'b', name);
    knob_value_format(value, &sent);
    buf_add_char(&sent, ' ');
}

void setUp(void) {
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
    knobs = knobs_create(store);
    owner = fixture_plugin(store, "p");
    link_a = link_b = (struct knobs_link){.send = note_sent};
    buf_reset(&sent);
}

void tearDown(void) {
    knobs_leave(&link_a);
    knobs_leave(&link_b);
    knobs_destroy(knobs);
    push_owner_unref(store, owner);
    push_store_destroy(store);
    buf_finish(&sent);
}

static void expect(const char *expected) {
    char *page CLEANUP_FREE = fixture_text(knobs_part(knobs));
    TEST_ASSERT_EQUAL_STRING(expected, page);
}

/* How many series a page shows. */
static size_t n_exported(void) {
    char *page CLEANUP_FREE = fixture_text(knobs_part(knobs));
    size_t n = 0;
    for (const char *at = page; (at = strstr(at, "\nplugin_param")) != NULL; at++) {
        n++;
    }
    return n;
}

static struct knob *declare(struct knobs_link *link, const struct knob_spec *spec) {
    struct error err = {0};
    int r = knobs_declare(knobs, link, owner, spec, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return knobs_find(link->plugin, spec->name);
}

static int request(const char *name, struct knob_value value) {
    struct knobs_plugin *plugin = knobs_of(knobs, owner);
    struct knob *knob = knobs_find(plugin, name);
    return knobs_request(knobs, owner, plugin, knob, &value, "somebody", NULL);
}

static struct knob_value number(double n) {
    return (struct knob_value){.form = KNOB_NUMBER, .number = n};
}

static void test_all_connections_hear_of_it(void) {
    declare(&link_a, &res);
    declare(&link_b, &res);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 a:res=480 ", buf_str(&sent));
    knobs_leave(&link_b);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(500)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 a:res=480 a:res=500 ", buf_str(&sent));
    TEST_ASSERT_EQUAL_INT(-EINVAL, request("res", number(2000)));
}

static uint64_t heard; /* the version of the last change that the listener was called for */

static void hear(struct knobs_listener *listener, const struct knobs_plugin *plugin) {
    (void)listener;
    heard = plugin->version;
}

/* A plugin without a connection adds knobs one by one; each change has a higher version. */
static void test_a_plugin_over_http(void) {
    struct knobs_listener listener = {.changed = hear};
    knobs_listen(knobs, &listener);
    TEST_ASSERT_EQUAL_INT(0, knobs_declare(knobs, NULL, owner, &res, NULL));
    uint64_t declared = heard;
    TEST_ASSERT_TRUE(declared > 0);
    TEST_ASSERT_EQUAL_INT(0, knobs_declare(knobs, NULL, owner, &mode, NULL));
    const struct knobs_plugin *plugin = knobs_of(knobs, owner);
    TEST_ASSERT_EQUAL_size_t(2, plugin->n_knobs);
    TEST_ASSERT_NULL(plugin->links);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    uint64_t requested = heard;
    TEST_ASSERT_TRUE(requested > declared && requested == plugin->version);
    struct knob_value applied = number(480);
    TEST_ASSERT_EQUAL_INT(0, knobs_applied(knobs, knobs_of(knobs, owner), "res", &applied, NULL));
    TEST_ASSERT_TRUE(heard > requested);
    declare(&link_a, &mode); /* a connection declares all that it has */
    TEST_ASSERT_EQUAL_size_t(1, plugin->n_knobs);
    knobs_listen(knobs, NULL);
}

static void test_state(void) {
    struct knob *knob = declare(&link_a, &res);
    TEST_ASSERT_EQUAL_INT(KNOB_ABSENT, knob->requested.form);
    TEST_ASSERT_EQUAL_DOUBLE(720, knob->applied.number);
    request("res", number(480));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->requested.number);
    TEST_ASSERT_EQUAL_DOUBLE(720, knob->applied.number);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    struct knob_value applied = number(480);
    TEST_ASSERT_EQUAL_INT(0, knobs_applied(knobs, link_a.plugin, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->applied.number);
    TEST_ASSERT_EQUAL_INT(-ENOENT, knobs_applied(knobs, link_a.plugin, "x", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(-ENOENT, knobs_applied(knobs, link_b.plugin, "res", &applied, NULL));
    applied.number = 9;
    TEST_ASSERT_EQUAL_INT(-EINVAL, knobs_applied(knobs, link_a.plugin, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(0, request("res", (struct knob_value){0}));
    TEST_ASSERT_EQUAL_STRING("a:res=480 a:res=720 ", buf_str(&sent));
}

/* Another daemon, with the same store. */
static void test_requests_are_kept(void) {
    declare(&link_a, &mode);
    struct knob_value text = {.form = KNOB_TEXT, .text = "exact"};
    TEST_ASSERT_EQUAL_INT(0, request("mode", text));
    knobs_leave(&link_a);
    knobs_destroy(knobs);
    knobs = knobs_create(store);
    buf_reset(&sent);
    struct knob *knob = declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_STRING("a:mode=\"exact\" ", buf_str(&sent));
    TEST_ASSERT_EQUAL_STRING("exact", knob->requested.text);
    TEST_ASSERT_EQUAL_STRING("fast", knob->applied.text);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    TEST_ASSERT_TRUE(knob->requested_seconds > 1e9);
    TEST_ASSERT_EQUAL_STRING("How.", knob->spec.help);
    TEST_ASSERT_EQUAL_STRING("exact", knob->spec.values[1]);
    /* What no longer fits is not asked for. */
    struct knob_spec narrow = mode;
    narrow.n_values = 1;
    buf_reset(&sent);
    knob = declare(&link_a, &narrow);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&sent));
    TEST_ASSERT_EQUAL_INT(KNOB_ABSENT, knob->requested.form);
}

static void restart(void) {
    knobs_leave(&link_a);
    knobs_destroy(knobs);
    knobs = knobs_create(store);
    buf_reset(&sent);
    push_owner_unref(store, owner); /* it has gone, too */
}

static void come_back(void) {
    owner = fixture_plugin(store, "p");
}

/* The daemon is back before the plugin. */
static void test_requests_are_known_after_a_restart(void) {
    struct knob_value exact = {.form = KNOB_TEXT, .text = "exact"};
    declare(&link_a, &res);
    declare(&link_a, &mode);
    request("mode", exact);
    struct knob_spec narrow = res;
    narrow.min = 480;
    request("res", number(480));
    declare(&link_a, &narrow); /* what is asked is known by its last declaration */
    TEST_ASSERT_EQUAL_size_t(4, n_exported());
    restart();

    /* Connected, it would say itself which knobs it has. */
    come_back();
    TEST_ASSERT_NULL(knobs_of(knobs, owner));
    push_owner_unref(store, owner);
    struct knobs_plugin *plugin = knobs_of(knobs, owner);
    TEST_ASSERT_EQUAL_PTR(plugin, knobs_of(knobs, owner));
    TEST_ASSERT_NULL(plugin->links);
    TEST_ASSERT_EQUAL_size_t(2, plugin->n_knobs);
    struct knob *knob = knobs_find(plugin, "mode");
    TEST_ASSERT_EQUAL_STRING("exact", knob->requested.text);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    TEST_ASSERT_TRUE(knob->requested_seconds > 1e9);
    TEST_ASSERT_EQUAL_INT(KNOB_ABSENT, knob->applied.form);
    TEST_ASSERT_EQUAL_STRING("fast", knob->spec.initial.text);
    TEST_ASSERT_EQUAL_STRING("exact", knob->spec.values[1]);
    TEST_ASSERT_EQUAL_STRING("How.", knob->spec.help);
    TEST_ASSERT_EQUAL_STRING("u", knob->spec.unit);
    TEST_ASSERT_TRUE(isinf(knob->spec.min));
    TEST_ASSERT_EQUAL_DOUBLE(1080, knobs_find(plugin, "res")->spec.max);

    TEST_ASSERT_EQUAL_INT(-EINVAL, request("res", number(472)));
    TEST_ASSERT_EQUAL_INT(0, request("res", number(488)));
    TEST_ASSERT_EQUAL_INT(0,
                          request("mode", (struct knob_value){.form = KNOB_TEXT, .text = "fast"}));
    expect("# TYPE plugin_param_requested gauge\n"
           "plugin_param_requested{param=\"res\",plugin=\"p\"} 488\n"
           "# TYPE plugin_param_requested_info gauge\n"
           "plugin_param_requested_info{param=\"mode\",plugin=\"p\",value=\"fast\"} 1\n");
    TEST_ASSERT_EQUAL_INT(0, request("mode", (struct knob_value){0}));
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    come_back();
    declare(&link_a, &narrow);
    TEST_ASSERT_EQUAL_STRING("a:res=488 ", buf_str(&sent));
    TEST_ASSERT_NULL(knobs_find(plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

/* The request is what must not be lost. */
static void test_long_declarations_are_not_kept(void) {
    static char lines[2000], pages[2000];
    static const char *const long_values[] = {"a", lines, pages};
    memset(lines, 'l', sizeof(lines) - 1);
    memset(pages, '\n', sizeof(pages) - 1);
    struct knob_spec spec = mode;
    spec.values = long_values;
    spec.n_values = 3;
    spec.initial.text = "a";
    declare(&link_a, &spec);
    TEST_ASSERT_EQUAL_INT(0, request("mode", spec.initial));
    restart();
    TEST_ASSERT_NULL(knobs_of(knobs, owner));
    come_back();
    declare(&link_a, &spec);
    TEST_ASSERT_EQUAL_STRING("a:mode=\"a\" ", buf_str(&sent));
}

static void test_limit(void) {
    for (int i = 0; i < 64; i++) {
        char name[8];
        snprintf(name, sizeof(name), "k%d", i);
        struct knob_spec spec = res;
        spec.name = name;
        declare(&link_a, &spec);
        declare(&link_a, &spec);
    }
    TEST_ASSERT_EQUAL_INT(-E2BIG, knobs_declare(knobs, &link_a, owner, &mode, NULL));
}

static int declare_of(const char *plugin, const char *who, const struct knob_spec *spec,
                      struct error *err) {
    struct knobs_link link = {.send = note_sent};
    struct push_owner *named = fixture_plugin(store, plugin);
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, named, who, NULL));
    int r = knobs_declare(knobs, &link, named, spec, err);
    knobs_leave(&link);
    push_owner_unref(store, named);
    return r;
}

/* Their series have labels of these names: an owner with one could pass for another. */
static void test_labels_of_knobs_are_not_the_owners(void) {
    static const char *const names[] = {"param", "value", "cam"};
    struct knob_spec spec = {.name = "res", .type = KNOB_INT};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct label label = {names[i], "q"};
        struct push_identity identity = {.plugin = "x", .labels = &label, .n_labels = 1};
        struct knobs_link link = {.send = note_sent};
        struct push_owner *named = NULL;
        TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &named, NULL));
        int expected = strcmp(names[i], "cam") == 0 ? 0 : -EINVAL;
        TEST_ASSERT_EQUAL_INT_MESSAGE(expected, knobs_declare(knobs, &link, named, &spec, NULL),
                                      names[i]);
        knobs_leave(&link);
        push_owner_unref(store, named);
    }
}

/* A peer may use many names, and an enum many values. */
static void test_limit_of_bytes(void) {
    struct error err = {0};
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 4 * 3072;
    push_store_configure(store, &config);
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL));
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL));
    const char *many[256];
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        many[i] = modes[0];
    }
    struct knob_spec large = mode;
    large.values = many;
    large.n_values = ARRAY_LEN(many);
    TEST_ASSERT_EQUAL_INT(-E2BIG, declare_of("b", "uid 1", &large, &err));
    TEST_ASSERT_EQUAL_STRING(
        "mode: the params of uid 1 would take more than 3072 bytes under all its "
        "names, a quarter of push.max-size-per-peer",
        err.text);
    int n = 0;
    while (n < 20 && declare_of((char[]){(char)('b' + n), '\0'}, "uid 1", &mode, NULL) == 0) {
        n++;
    }
    TEST_ASSERT_INT_WITHIN(3, 5, n);
    TEST_ASSERT_EQUAL_INT(0, declare_of("z", "uid 2", &mode, NULL));
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL)); /* takes its own place */
}

/* A peer that loses a plugin's name to a better known one may stay connected for a while. */
static void test_knobs_of_another_are_not_shown(void) {
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, owner, "uid 1", NULL));
    declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, owner, "container", NULL));
    TEST_ASSERT_NULL(knobs_of(knobs, owner));
    declare(&link_b, &res);
    struct knobs_plugin *plugin = knobs_of(knobs, owner);
    TEST_ASSERT_NULL(knobs_find(plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(1, plugin->n_knobs);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 ", buf_str(&sent));
    knobs_leave(&link_a);
    TEST_ASSERT_NOT_NULL(plugin->links);
}

/* Values count though they come later. */
static void test_room_of_values(void) {
    struct knob_spec text = {.name = "t", .type = KNOB_STRING, .initial = {KNOB_TEXT, 0, ""}};
    TEST_ASSERT_GREATER_THAN_size_t(4 * KNOB_MAX_TEXT, knob_spec_room(&text));
    TEST_ASSERT_LESS_THAN_size_t(300, knob_spec_room(&res));
}

/* A plugin that comes back without a knob does not have it any more. */
static void test_knobs_are_declared_anew(void) {
    declare(&link_a, &res);
    declare(&link_a, &mode);
    request("res", number(480));
    TEST_ASSERT_EQUAL_size_t(3, n_exported());
    knobs_leave(&link_a);
    TEST_ASSERT_NOT_NULL(knobs_find(knobs_of(knobs, owner), "mode"));
    declare(&link_b, &res);
    TEST_ASSERT_NULL(knobs_find(link_b.plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(1, link_b.plugin->n_knobs);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    TEST_ASSERT_EQUAL_STRING("a:res=480 b:res=480 ", buf_str(&sent));
    declare(&link_a, &mode); /* a second connection takes nothing away */
    TEST_ASSERT_EQUAL_size_t(2, link_b.plugin->n_knobs);
}

/* Once its owner is gone a plugin is forgotten, when the next one comes. */
static void test_the_gone_are_forgotten(void) {
    declare(&link_a, &res);
    knobs_leave(&link_a);
    push_owner_unref(store, owner);
    fixture_ms += 600000;
    push_store_expire(store, SIZE_MAX);
    owner = fixture_plugin(store, "q");
    declare(&link_a, &res);
    TEST_ASSERT_NULL(link_a.plugin->next);
}

/* A request is kept for a plugin that is gone; it is not there again because of that. */
static void test_a_request_is_no_sign_of_life(void) {
    declare(&link_a, &res);
    knobs_leave(&link_a);
    push_owner_unref(store, owner);
    struct knobs_plugin *plugin = knobs_of(knobs, owner);
    struct knob *knob = knobs_find(plugin, "res");
    struct knob_value request = number(480);
    TEST_ASSERT_NULL(plugin->links);
    fixture_ms += 200000;
    double seen = push_owner_view(store, owner).seen_seconds;
    TEST_ASSERT_EQUAL_INT(0, knobs_request(knobs, owner, plugin, knob, &request, "x", NULL));
    TEST_ASSERT_DOUBLE_WITHIN(10, seen, push_owner_view(store, owner).seen_seconds);
    expect("# TYPE plugin_param gauge\n"
           "plugin_param{param=\"res\",plugin=\"p\"} 720\n"
           "# TYPE plugin_param_requested gauge\n"
           "plugin_param_requested{param=\"res\",plugin=\"p\"} 480\n");
    fixture_ms += 200000;
    push_store_expire(store, SIZE_MAX);
    expect("");
    request.number = 500;
    TEST_ASSERT_EQUAL_INT(0, knobs_request(knobs, owner, plugin, knob, &request, "x", NULL));
    expect("");
    owner = fixture_plugin(store, "p");
    declare(&link_a, &res);
    TEST_ASSERT_NOT_NULL(plugin->links);
    TEST_ASSERT_EQUAL_STRING("a:res=500 ", buf_str(&sent));
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

static void test_export_has_one_series_per_value(void) {
    declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    struct knob_value text = {.form = KNOB_TEXT, .text = "exact"};
    request("mode", text);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    knobs_applied(knobs, link_a.plugin, "mode", &text, NULL);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    request("mode", (struct knob_value){0});
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    declare(&link_a, &res);
    request("res", number(480));
    TEST_ASSERT_EQUAL_size_t(3, n_exported());
    /* A knob may come back with another type. */
    struct knob_spec changed = mode;
    changed.name = "res";
    declare(&link_a, &changed);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

/* Nobody hears of what a restart would forget. */
static void test_what_cannot_be_kept_is_not_done(void) {
    struct push_store *roomy = store;
    struct push_owner *roomy_owner = owner;
    struct knobs *roomy_params = knobs;
    struct push_store_config config = fixture_config();
    config.table_bytes = 8 * 4096;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
    knobs = knobs_create(store);
    owner = fixture_plugin(store, "p");
    struct knob *knob = declare(&link_a, &res);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    double since = knob->requested_seconds;
    int r = 0;
    for (int i = 0; r == 0 && i < 10000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%d", i);
        r = push_store_put_note(store, owner, key, "", NULL);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, r);
    buf_reset(&sent);
    TEST_ASSERT_EQUAL_INT(-ENOSPC, request("res", number(500)));
    TEST_ASSERT_EQUAL_STRING("", buf_str(&sent));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->requested.number);
    TEST_ASSERT_EQUAL_DOUBLE(since, knob->requested_seconds);
    /* To forget it takes no room. */
    TEST_ASSERT_EQUAL_INT(0, request("res", (struct knob_value){0}));
    TEST_ASSERT_EQUAL_STRING("a:res=720 ", buf_str(&sent));
    knobs_leave(&link_a);
    knobs_destroy(knobs);
    push_owner_unref(store, owner);
    push_store_destroy(store);
    store = roomy;
    owner = roomy_owner;
    knobs = roomy_params;
}

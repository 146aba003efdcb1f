#include "exporter/channel/knobs.h"

#include <errno.h>
#include <math.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/push/claim.h"
#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;
static struct params_table *params;
static struct push_owner *owner;
static struct params_link link_a, link_b;
static struct buf sent;

static const char *const modes[] = {"fast", "exact"};
static const struct param_spec res = {
    .name = "res",
    .type = PARAM_INT,
    .initial = {.form = PARAM_NUMBER, .number = 720},
    .min = 240,
    .max = 1080,
};
static const struct param_spec mode = {
    .name = "mode",
    .type = PARAM_ENUM,
    .initial = {.form = PARAM_TEXT, .text = "fast"},
    .min = -INFINITY,
    .max = INFINITY,
    .values = modes,
    .n_values = 2,
    .unit = "u",
    .help = "How.",
};

static void note_sent(struct params_link *link, const char *name, const struct param_value *value) {
    buf_printf(&sent, "%c:%s=", link == &link_a ? 'a' : 'b', name);
    param_value_format(value, &sent);
    buf_add_char(&sent, ' ');
}

void setUp(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_help_len = 100;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
    params = params_create(store);
    owner = fixture_plugin(store, "p");
    link_a = link_b = (struct params_link){.send = note_sent};
    buf_reset(&sent);
}

void tearDown(void) {
    params_leave(&link_a);
    params_leave(&link_b);
    params_destroy(params);
    push_owner_unref(store, owner);
    push_store_destroy(store);
    buf_finish(&sent);
}

static void expect(const char *expected) {
    char *page CLEANUP_FREE = fixture_text(params_part(params));
    TEST_ASSERT_EQUAL_STRING(expected, page);
}

/* How many series a page shows. */
static size_t n_exported(void) {
    char *page CLEANUP_FREE = fixture_text(params_part(params));
    size_t n = 0;
    for (const char *at = page; (at = strstr(at, "\nplugin_param")) != NULL; at++) {
        n++;
    }
    return n;
}

static struct params_knob *declare(struct params_link *link, const struct param_spec *spec) {
    struct error err = {0};
    int r = params_declare(params, link, owner, spec, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return params_find_knob(link->plugin, spec->name);
}

static int request(const char *name, struct param_value value) {
    struct params_plugin *plugin = params_of(params, owner);
    struct params_knob *knob = params_find_knob(plugin, name);
    return params_request(params, owner, plugin, knob, &value, "somebody", NULL);
}

static struct param_value number(double n) {
    return (struct param_value){.form = PARAM_NUMBER, .number = n};
}

static void test_all_connections_hear_of_it(void) {
    declare(&link_a, &res);
    declare(&link_b, &res);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 a:res=480 ", buf_str(&sent));
    params_leave(&link_b);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(500)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 a:res=480 a:res=500 ", buf_str(&sent));
    TEST_ASSERT_EQUAL_INT(-EINVAL, request("res", number(2000)));
}

static void test_state(void) {
    struct params_knob *knob = declare(&link_a, &res);
    TEST_ASSERT_EQUAL_INT(PARAM_ABSENT, knob->requested.form);
    TEST_ASSERT_EQUAL_DOUBLE(720, knob->applied.number);
    request("res", number(480));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->requested.number);
    TEST_ASSERT_EQUAL_DOUBLE(720, knob->applied.number);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    struct param_value applied = number(480);
    TEST_ASSERT_EQUAL_INT(0, params_applied(&link_a, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->applied.number);
    TEST_ASSERT_EQUAL_INT(-ENOENT, params_applied(&link_a, "x", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(-ENOENT, params_applied(&link_b, "res", &applied, NULL));
    applied.number = 9;
    TEST_ASSERT_EQUAL_INT(-EINVAL, params_applied(&link_a, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(0, request("res", (struct param_value){0}));
    TEST_ASSERT_EQUAL_STRING("a:res=480 a:res=720 ", buf_str(&sent));
}

/* Another daemon, with the same store. */
static void test_requests_are_kept(void) {
    declare(&link_a, &mode);
    struct param_value text = {.form = PARAM_TEXT, .text = "exact"};
    TEST_ASSERT_EQUAL_INT(0, request("mode", text));
    params_leave(&link_a);
    params_destroy(params);
    params = params_create(store);
    buf_reset(&sent);
    struct params_knob *knob = declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_STRING("a:mode=\"exact\" ", buf_str(&sent));
    TEST_ASSERT_EQUAL_STRING("exact", knob->requested.text);
    TEST_ASSERT_EQUAL_STRING("fast", knob->applied.text);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    TEST_ASSERT_TRUE(knob->requested_seconds > 1e9);
    TEST_ASSERT_EQUAL_STRING("How.", knob->spec.help);
    TEST_ASSERT_EQUAL_STRING("exact", knob->spec.values[1]);
    /* What no longer fits is not asked for. */
    struct param_spec narrow = mode;
    narrow.n_values = 1;
    buf_reset(&sent);
    knob = declare(&link_a, &narrow);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&sent));
    TEST_ASSERT_EQUAL_INT(PARAM_ABSENT, knob->requested.form);
}

static void restart(void) {
    params_leave(&link_a);
    params_destroy(params);
    params = params_create(store);
    buf_reset(&sent);
    push_owner_unref(store, owner); /* it has gone, too */
}

static void come_back(void) {
    owner = fixture_plugin(store, "p");
}

/* The daemon is back before the plugin. */
static void test_wishes_are_known_after_a_restart(void) {
    struct param_value exact = {.form = PARAM_TEXT, .text = "exact"};
    declare(&link_a, &res);
    declare(&link_a, &mode);
    request("mode", exact);
    struct param_spec narrow = res;
    narrow.min = 480;
    request("res", number(480));
    declare(&link_a, &narrow); /* what is asked is known by its last declaration */
    TEST_ASSERT_EQUAL_size_t(4, n_exported());
    restart();

    /* Connected, it would say itself which knobs it has. */
    come_back();
    TEST_ASSERT_NULL(params_of(params, owner));
    push_owner_unref(store, owner);
    struct params_plugin *plugin = params_of(params, owner);
    TEST_ASSERT_EQUAL_PTR(plugin, params_of(params, owner));
    TEST_ASSERT_FALSE(params_is_connected(plugin));
    TEST_ASSERT_EQUAL_size_t(2, plugin->n_knobs);
    struct params_knob *knob = params_find_knob(plugin, "mode");
    TEST_ASSERT_EQUAL_STRING("exact", knob->requested.text);
    TEST_ASSERT_EQUAL_STRING("somebody", knob->requested_by);
    TEST_ASSERT_TRUE(knob->requested_seconds > 1e9);
    TEST_ASSERT_EQUAL_INT(PARAM_ABSENT, knob->applied.form);
    TEST_ASSERT_EQUAL_STRING("fast", knob->spec.initial.text);
    TEST_ASSERT_EQUAL_STRING("exact", knob->spec.values[1]);
    TEST_ASSERT_EQUAL_STRING("How.", knob->spec.help);
    TEST_ASSERT_EQUAL_STRING("u", knob->spec.unit);
    TEST_ASSERT_TRUE(isinf(knob->spec.min));
    TEST_ASSERT_EQUAL_DOUBLE(1080, params_find_knob(plugin, "res")->spec.max);

    TEST_ASSERT_EQUAL_INT(-EINVAL, request("res", number(472)));
    TEST_ASSERT_EQUAL_INT(0, request("res", number(488)));
    TEST_ASSERT_EQUAL_INT(
        0, request("mode", (struct param_value){.form = PARAM_TEXT, .text = "fast"}));
    expect("# TYPE plugin_param_requested gauge\n"
           "plugin_param_requested{param=\"res\",plugin=\"p\"} 488\n"
           "# TYPE plugin_param_requested_info gauge\n"
           "plugin_param_requested_info{param=\"mode\",plugin=\"p\",value=\"fast\"} 1\n");
    TEST_ASSERT_EQUAL_INT(0, request("mode", (struct param_value){0}));
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    come_back();
    declare(&link_a, &narrow);
    TEST_ASSERT_EQUAL_STRING("a:res=488 ", buf_str(&sent));
    TEST_ASSERT_NULL(params_find_knob(plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

/* The wish is what must not be lost. */
static void test_long_declarations_are_not_kept(void) {
    static char lines[2000], pages[2000];
    static const char *const long_values[] = {"a", lines, pages};
    memset(lines, 'l', sizeof(lines) - 1);
    memset(pages, '\n', sizeof(pages) - 1);
    struct param_spec spec = mode;
    spec.values = long_values;
    spec.n_values = 3;
    spec.initial.text = "a";
    declare(&link_a, &spec);
    TEST_ASSERT_EQUAL_INT(0, request("mode", spec.initial));
    restart();
    TEST_ASSERT_NULL(params_of(params, owner));
    come_back();
    declare(&link_a, &spec);
    TEST_ASSERT_EQUAL_STRING("a:mode=\"a\" ", buf_str(&sent));
}

static void test_limit(void) {
    params_limit(params, 1, SIZE_MAX);
    declare(&link_a, &res);
    declare(&link_a, &res);
    TEST_ASSERT_EQUAL_INT(-E2BIG, params_declare(params, &link_a, owner, &mode, NULL));
}

static int declare_of(const char *plugin, const char *who, const struct param_spec *spec,
                      struct error *err) {
    struct params_link link = {.send = note_sent};
    struct push_owner *named = fixture_plugin(store, plugin);
    TEST_ASSERT_EQUAL_INT(0, push_claim(store, named, who, false, NULL));
    int r = params_declare(params, &link, named, spec, err);
    params_leave(&link);
    push_owner_unref(store, named);
    return r;
}

/* A peer may use many names, and an enum many values. */
static void test_limit_of_bytes(void) {
    struct error err = {0};
    params_limit(params, 64, 3 * 1024);
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL));
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL));
    const char *many[256];
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        many[i] = modes[0];
    }
    struct param_spec large = mode;
    large.values = many;
    large.n_values = ARRAY_LEN(many);
    TEST_ASSERT_EQUAL_INT(-E2BIG, declare_of("b", "uid 1", &large, &err));
    TEST_ASSERT_EQUAL_STRING("mode: the params of uid 1 would take more than 3072 bytes by all its "
                             "names (push.max-params-size-per-peer)",
                             err.text);
    int n = 0;
    while (n < 20 && declare_of((char[]){(char)('b' + n), '\0'}, "uid 1", &mode, NULL) == 0) {
        n++;
    }
    TEST_ASSERT_INT_WITHIN(3, 5, n);
    TEST_ASSERT_EQUAL_INT(0, declare_of("z", "uid 2", &mode, NULL));
    TEST_ASSERT_EQUAL_INT(0, declare_of("a", "uid 1", &mode, NULL)); /* takes its own place */
}

/* Who loses a plugin's name to a better known one may be connected for a while still. */
static void test_knobs_of_another_are_not_shown(void) {
    TEST_ASSERT_EQUAL_INT(0, push_claim(store, owner, "uid 1", false, NULL));
    declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_INT(0, push_claim(store, owner, "container", false, NULL));
    TEST_ASSERT_NULL(params_of(params, owner));
    declare(&link_b, &res);
    struct params_plugin *plugin = params_of(params, owner);
    TEST_ASSERT_NULL(params_find_knob(plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(1, plugin->n_knobs);
    TEST_ASSERT_EQUAL_INT(0, request("res", number(480)));
    TEST_ASSERT_EQUAL_STRING("b:res=480 ", buf_str(&sent));
    params_leave(&link_a);
    TEST_ASSERT_TRUE(params_is_connected(plugin));
}

/* Values count though they come later. */
static void test_room_of_values(void) {
    struct param_spec text = {.name = "t", .type = PARAM_STRING, .initial = {PARAM_TEXT, 0, ""}};
    TEST_ASSERT_GREATER_THAN_size_t(4 * PARAM_MAX_TEXT, param_spec_room(&text));
    TEST_ASSERT_LESS_THAN_size_t(300, param_spec_room(&res));
}

/* A plugin that comes back without a knob does not have it any more. */
static void test_knobs_are_declared_anew(void) {
    declare(&link_a, &res);
    declare(&link_a, &mode);
    request("res", number(480));
    TEST_ASSERT_EQUAL_size_t(3, n_exported());
    params_leave(&link_a);
    TEST_ASSERT_NOT_NULL(params_find_knob(params_of(params, owner), "mode"));
    declare(&link_b, &res);
    TEST_ASSERT_NULL(params_find_knob(link_b.plugin, "mode"));
    TEST_ASSERT_EQUAL_size_t(1, link_b.plugin->n_knobs);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    TEST_ASSERT_EQUAL_STRING("a:res=480 b:res=480 ", buf_str(&sent));
    declare(&link_a, &mode); /* a second connection takes nothing away */
    TEST_ASSERT_EQUAL_size_t(2, link_b.plugin->n_knobs);
}

/* Once its owner is gone a plugin is forgotten, when the next one comes. */
static void test_the_gone_are_forgotten(void) {
    declare(&link_a, &res);
    params_leave(&link_a);
    push_owner_unref(store, owner);
    fixture_ms += 600000;
    push_store_expire(store, SIZE_MAX);
    owner = fixture_plugin(store, "q");
    declare(&link_a, &res);
    TEST_ASSERT_NULL(link_a.plugin->next);
}

/* A wish is kept for a plugin that is gone; it is not there again because of that. */
static void test_a_wish_is_no_sign_of_life(void) {
    declare(&link_a, &res);
    params_leave(&link_a);
    push_owner_unref(store, owner);
    struct params_plugin *plugin = params_of(params, owner);
    struct params_knob *knob = params_find_knob(plugin, "res");
    struct param_value wish = number(480);
    TEST_ASSERT_FALSE(params_is_connected(plugin));
    fixture_ms += 200000;
    double seen = push_owner_view(store, owner).seen_seconds;
    TEST_ASSERT_EQUAL_INT(0, params_request(params, owner, plugin, knob, &wish, "x", NULL));
    TEST_ASSERT_DOUBLE_WITHIN(10, seen, push_owner_view(store, owner).seen_seconds);
    expect("# TYPE plugin_param gauge\n"
           "plugin_param{param=\"res\",plugin=\"p\"} 720\n"
           "# TYPE plugin_param_requested gauge\n"
           "plugin_param_requested{param=\"res\",plugin=\"p\"} 480\n");
    fixture_ms += 200000;
    push_store_expire(store, SIZE_MAX);
    expect("");
    wish.number = 500;
    TEST_ASSERT_EQUAL_INT(0, params_request(params, owner, plugin, knob, &wish, "x", NULL));
    expect("");
    owner = fixture_plugin(store, "p");
    declare(&link_a, &res);
    TEST_ASSERT_TRUE(params_is_connected(plugin));
    TEST_ASSERT_EQUAL_STRING("a:res=500 ", buf_str(&sent));
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

static void test_export_has_one_series_per_value(void) {
    declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    struct param_value text = {.form = PARAM_TEXT, .text = "exact"};
    request("mode", text);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    params_applied(&link_a, "mode", &text, NULL);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    request("mode", (struct param_value){0});
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    declare(&link_a, &res);
    request("res", number(480));
    TEST_ASSERT_EQUAL_size_t(3, n_exported());
    /* A knob may come back with another type. */
    struct param_spec changed = mode;
    changed.name = "res";
    declare(&link_a, &changed);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
}

/* Nobody hears of what a restart would forget. */
static void test_what_cannot_be_kept_is_not_done(void) {
    struct push_store *roomy = store;
    struct push_owner *roomy_owner = owner;
    struct params_table *roomy_params = params;
    struct push_store_config config = fixture_config();
    config.limits.max_help_len = 100;
    config.table_bytes = 8 * 4096;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
    params = params_create(store);
    owner = fixture_plugin(store, "p");
    struct params_knob *knob = declare(&link_a, &res);
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
    TEST_ASSERT_EQUAL_INT(0, request("res", (struct param_value){0}));
    TEST_ASSERT_EQUAL_STRING("a:res=720 ", buf_str(&sent));
    params_leave(&link_a);
    params_destroy(params);
    push_owner_unref(store, owner);
    push_store_destroy(store);
    store = roomy;
    owner = roomy_owner;
    params = roomy_params;
}

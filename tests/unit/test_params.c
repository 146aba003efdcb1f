#include "exporter/params.h"

#include <errno.h>
#include <math.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "push_fixture.h"

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
    params_leave(params, &link_a);
    params_leave(params, &link_b);
    params_destroy(params);
    push_owner_unref(store, owner);
    push_store_destroy(store);
    buf_finish(&sent);
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
    params_leave(params, &link_b);
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
    TEST_ASSERT_EQUAL_INT(0, params_applied(params, &link_a, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->applied.number);
    TEST_ASSERT_EQUAL_INT(-ENOENT, params_applied(params, &link_a, "x", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(-ENOENT, params_applied(params, &link_b, "res", &applied, NULL));
    applied.number = 9;
    TEST_ASSERT_EQUAL_INT(-EINVAL, params_applied(params, &link_a, "res", &applied, NULL));
    TEST_ASSERT_EQUAL_INT(0, request("res", (struct param_value){0}));
    TEST_ASSERT_EQUAL_STRING("a:res=480 a:res=720 ", buf_str(&sent));
}

/* Another daemon, with the same store. */
static void test_requests_are_kept(void) {
    declare(&link_a, &mode);
    struct param_value text = {.form = PARAM_TEXT, .text = "exact"};
    TEST_ASSERT_EQUAL_INT(0, request("mode", text));
    params_leave(params, &link_a);
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

static void test_limit(void) {
    params_limit(params, 1);
    declare(&link_a, &res);
    declare(&link_a, &res);
    TEST_ASSERT_EQUAL_INT(-E2BIG, params_declare(params, &link_a, owner, &mode, NULL));
}

static size_t n_exported(void);

/* A plugin that comes back without a knob does not have it any more. */
static void test_knobs_are_declared_anew(void) {
    declare(&link_a, &res);
    declare(&link_a, &mode);
    request("res", number(480));
    TEST_ASSERT_EQUAL_size_t(3, n_exported());
    params_leave(params, &link_a);
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
    params_leave(params, &link_a);
    push_owner_unref(store, owner);
    fixture_ms += 600000;
    push_store_expire(store);
    owner = fixture_plugin(store, "q");
    declare(&link_a, &res);
    TEST_ASSERT_NULL(link_a.plugin->next);
}

static size_t n_param_series;

static void count_series(const struct push_series_view *series, void *context) {
    (void)context;
    n_param_series += strncmp(series->name, "plugin_param", strlen("plugin_param")) == 0;
}

static size_t n_exported(void) {
    n_param_series = 0;
    push_store_visit(store, NULL, count_series, NULL);
    return n_param_series;
}

static void test_export_has_one_series_per_value(void) {
    declare(&link_a, &mode);
    TEST_ASSERT_EQUAL_size_t(1, n_exported());
    struct param_value text = {.form = PARAM_TEXT, .text = "exact"};
    request("mode", text);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    params_applied(params, &link_a, "mode", &text, NULL);
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

/* What another daemon showed of a plugin's knobs goes, and of nobody else's. */
static void test_export_after_a_restart(void) {
    declare(&link_a, &mode);
    declare(&link_a, &res);
    struct push_owner *other = fixture_plugin(store, "other");
    params_declare(params, &link_b, other, &mode, NULL);
    params_leave(params, &link_b);
    request("mode", (struct param_value){.form = PARAM_TEXT, .text = "exact"});
    TEST_ASSERT_EQUAL_size_t(4, n_exported());
    params_leave(params, &link_a);
    params_destroy(params);
    params = params_create(store);
    static const char *const others[] = {"slow"};
    struct param_spec changed = mode;
    changed.initial.text = "slow";
    changed.values = others;
    changed.n_values = 1;
    declare(&link_a, &changed);
    TEST_ASSERT_EQUAL_size_t(2, n_exported());
    push_owner_unref(store, other);
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_all_connections_hear_of_it);
    RUN_TEST(test_state);
    RUN_TEST(test_requests_are_kept);
    RUN_TEST(test_knobs_are_declared_anew);
    RUN_TEST(test_limit);
    RUN_TEST(test_the_gone_are_forgotten);
    RUN_TEST(test_export_has_one_series_per_value);
    RUN_TEST(test_export_after_a_restart);
    return UNITY_END();
}

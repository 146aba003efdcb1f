#include "exporter/push/claim.h"

#include <errno.h>

#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;

void setUp(void) {
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
}

void tearDown(void) {
    push_store_destroy(store);
}

static void test_ranks(void) {
    static const struct {
        const char *first, *second;
        bool taken, kept; /* by the second: the name, and what the first pushed */
    } rows[] = {
        {"http 10.0.0.1", "http 10.0.0.2", true, true},
        {"http", "unverified", true, false},
        {"unverified", "http", false, true},
        {"unverified", "pywaggle", true, false},
        {"pywaggle", "ended uid 1", true, false},
        {"ended uid 1", "ended uid 2", false, true},
        {"ended uid 1", "uid 1", true, false},
        {"uid 1", "ended uid 1", false, true},
        {"uid 1", "uid 2", false, true},
        {"uid 1", "container", true, false},
        {"container", "uid 1", false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_owner *owner = fixture_plugin(store, "p");
        TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, owner, rows[i].first, NULL));
        fixture_push(store, owner, "m", PUSH_GAUGE, PUSH_SET, 1);
        uint64_t number = push_claim_number(owner);
        int r = fixture_claim_as(store, owner, rows[i].second, NULL);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].taken ? 0 : -EACCES, r, rows[i].second);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].kept, push_owner_view(store, owner).n_series == 1,
                                  rows[i].second);
        bool same = strncmp(rows[i].first, "http", 4) == 0 && rows[i].kept;
        TEST_ASSERT_EQUAL(rows[i].taken && !same, push_claim_number(owner) != number);
        push_store_remove_owner(store, owner);
        push_owner_unref(store, owner);
    }
}

/* Whoever came first: what is a plugin's nobody else can occupy. */
static void test_a_twin_makes_way(void) {
    const struct {
        struct push_identity weak;
        const char *weak_claim, *strong_claim;
    } rows[] = {
        {{.group = true, .labels = (const struct label[]){{"instance", "i"}, {"plugin", "p"}}},
         "http",
         "http"},
        {{.plugin = "p", .labels = (const struct label[]){{"instance", "i"}}}, "http", "uid 5"},
        {{.plugin = "p", .labels = (const struct label[]){{"instance", "i"}}}, NULL, "uid 5"},
    };
    static const double one = 1, two = 2;
    static const struct label instance = {"instance", "i"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_identity identity = rows[i].weak;
        identity.n_labels = identity.group ? 2 : 1;
        struct push_owner *weak = NULL, *strong = fixture_plugin(store, "p");
        TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &weak, NULL));
        if (rows[i].weak_claim != NULL) {
            fixture_claim_as(store, weak, rows[i].weak_claim, NULL);
        }
        fixture_claim_as(store, strong, rows[i].strong_claim, NULL);
        struct push_update theirs = {
            .name = "m", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1};
        struct push_update ours[2] = {theirs, {.name = "-", .ttl_ms = -1}};
        ours[0].labels = &instance;
        ours[0].n_labels = 1;
        ours[0].values = &two;
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, weak, PUSH_MERGE, 0, &theirs, 1));
        /* What fails leaves all as it was. */
        TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, strong, PUSH_MERGE, 0, ours, 2));
        TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, weak).n_series);
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, weak, PUSH_MERGE, 0, &theirs, 1));
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, strong, PUSH_MERGE, 0, ours, 1));
        TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_apply(store, weak, PUSH_MERGE, 0, &theirs, 1));
        TEST_ASSERT_EQUAL_size_t(0, push_owner_view(store, weak).n_series);
        push_store_remove_owner(store, weak);
        push_store_remove_owner(store, strong);
        push_owner_unref(store, weak);
        push_owner_unref(store, strong);
        TEST_ASSERT_EQUAL_size_t(0, push_store_stats(store).n_series);
    }
}

static struct push_owner *open_group(const struct label *labels, size_t n, const char *who,
                                     int want) {
    struct push_identity identity = {.group = true, .labels = labels, .n_labels = n};
    struct push_owner *group = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &group, NULL));
    TEST_ASSERT_EQUAL_INT(want, fixture_claim_as(store, group, who, &fixture_err));
    return group;
}

static int push_labelled(struct push_owner *owner, const struct label *label) {
    static const double one = 1;
    struct push_update update = {.name = "m",
                                 .type = PUSH_GAUGE,
                                 .labels = label,
                                 .n_labels = label != NULL ? 1 : 0,
                                 .values = &one,
                                 .n_values = 1};
    return fixture_apply(store, owner, PUSH_MERGE, 0, &update, 1);
}

/* Neither by its path nor by a metric's labels can a group be taken for a plugin that we know. */
static void test_a_group_is_no_plugin(void) {
    static const struct label whole[] = {{"job", "cars"}, {"plugin", "p"}, {"zone", "z"}};
    static const struct label plugin = {"plugin", "p"}, other = {"plugin", "q"};
    static const struct push_identity identity = {.plugin = "p", .job = "cars"};
    struct push_owner *by_path = open_group(whole, 3, "http", 0);
    struct push_owner *by_body = open_group(whole, 1, "http", 0);
    struct push_owner *known = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_labelled(by_path, NULL));
    TEST_ASSERT_EQUAL_INT(0, push_labelled(by_body, &plugin));
    TEST_ASSERT_EQUAL_INT(0, push_labelled(by_body, &other));
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &known, NULL));
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, known, "http", NULL)); /* is no better */
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, by_path).n_series);
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, known, "uid 1", NULL));
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_EQUAL_size_t(0, push_owner_view(store, by_path).n_series);
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, by_body).n_series);

    TEST_ASSERT_EQUAL_INT(-EACCES, push_labelled(by_path, NULL)); /* a request that was waiting */
    TEST_ASSERT_EQUAL_INT(-EACCES, push_labelled(by_body, &plugin));
    TEST_ASSERT_EQUAL_STRING("m: has the labels of plugin p, job cars, which is owned by uid 1",
                             fixture_err.text);
    push_owner_unref(store, by_path);
    push_owner_unref(store, open_group(whole, 3, "http", -EACCES));
    TEST_ASSERT_EQUAL_STRING(
        "group job=cars plugin=p zone=z: has the labels of plugin p, job cars, "
        "which is owned by uid 1",
        fixture_err.text);
    push_owner_unref(store, open_group(whole + 1, 2, "http", 0)); /* of another job */
    push_owner_unref(store, known);

    /* While it is away its labels are anybody's, until it is back. */
    by_path = open_group(whole, 3, "http", 0);
    TEST_ASSERT_EQUAL_INT(0, push_labelled(by_path, NULL));
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &known, NULL));
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, known, "uid 1", NULL));
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_EQUAL_size_t(0, push_owner_view(store, by_path).n_series);
    push_owner_unref(store, by_path);
    push_owner_unref(store, by_body);
    push_owner_unref(store, known);
}

/* However many series groups have, a claim takes no time for them: that is left to the passes. */
static void test_a_claim_looks_at_no_group(void) {
    static const struct label job = {"job", "cars"};
    static const struct label named[] = {{"plugin", "p"}, {"plugin", "q"}};
    struct push_owner *group = open_group(&job, 1, "http", 0);
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        TEST_ASSERT_EQUAL_INT(0, push_labelled(group, &named[i]));
    }
    struct push_owner *known = fixture_plugin(store, "p");
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, known, "uid 1", NULL));
    TEST_ASSERT_EQUAL_size_t(2, push_owner_view(store, group).n_series);
    for (size_t i = 0; i < 100; i++) {
        TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, known, "uid 1", NULL));
    }
    TEST_ASSERT_EQUAL_size_t(2, push_owner_view(store, group).n_series);
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, group).n_series);
    push_owner_unref(store, group);
    push_owner_unref(store, known);
}

static int push_many(struct push_store *to, struct push_owner *owner, size_t n) {
    static const double one = 1;
    for (size_t i = 0; i < n; i++) {
        char number[8];
        snprintf(number, sizeof(number), "%zu", i);
        struct label label = {"i", number};
        struct push_update update = {.name = "m",
                                     .type = PUSH_GAUGE,
                                     .labels = &label,
                                     .n_labels = 1,
                                     .values = &one,
                                     .n_values = 1,
                                     .ttl_ms = 0};
        int r = fixture_apply(to, owner, PUSH_MERGE, 0, &update, 1);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static struct push_owner *claimed(struct push_store *of, const char *plugin, const char *container,
                                  const char *who) {
    struct push_identity identity = {.plugin = plugin, .container = container};
    struct push_owner *owner = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(of, &identity, &owner, NULL));
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(of, owner, who, NULL));
    return owner;
}

/* Bytes of about 60 series. */
static void limit_peers(struct push_store *of) {
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 29000;
    push_store_configure(of, &config);
}

static void test_a_peer_leaves_room_to_others(void) {
    static const struct {
        const char *container, *who;
        const char *same, *other; /* claims */
    } rows[] = {
        {NULL, "uid 1", "uid 1", "uid 2"},
        {NULL, "http localhost", "http localhost", "http 10.0.0.1"},
        {NULL, "ended uid 1", "ended uid 2", "uid 1"},
        {NULL, "uid 100000", "uid 165535", "uid 65535"},
        {NULL, "uid 65536", "ended uid 1", "uid 1"},
        {NULL, "http uid 100000", "http uid 100001", "http uid 1000"},
        {"box", "container", "container", "uid 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        limit_peers(store);
        struct push_owner *first = claimed(store, "first", rows[i].container, rows[i].who);
        TEST_ASSERT_EQUAL_INT(0, push_many(store, first, 40));
        /* Known again after a restart of ours. */
        struct push_store_config config = fixture_config();
        struct push_store *later = NULL;
        struct push_load_report report;
        size_t len;
        TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &later, NULL));
        const void *pages = fixture_pages(store, &len);
        push_store_load(later, pages, len, &report);
        limit_peers(later);
        struct push_owner *second = claimed(later, "second", rows[i].container, rows[i].same);
        TEST_ASSERT_EQUAL_INT(-E2BIG, push_many(later, second, 50));
        TEST_ASSERT_NOT_NULL(strstr(fixture_err.text, "push.max-size-per-peer"));
        TEST_ASSERT_INT_WITHIN(15, 60, (int)push_store_stats(later).n_series);
        struct push_owner *other = claimed(later, "other", NULL, rows[i].other);
        TEST_ASSERT_EQUAL_INT(0, push_many(later, other, 40));
        push_store_destroy(later);
        push_store_remove_owner(store, first);
        push_owner_unref(store, first);
    }
}

/* A histogram whose label takes ten bytes, on twelve lines. */
static int push_histogram(struct push_owner *owner, enum push_mode mode, const char *value) {
    static const double figures[12];
    static const double bounds[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct label label = {"i", value};
    struct push_update update = {.name = "h",
                                 .type = PUSH_HISTOGRAM,
                                 .op = PUSH_INC,
                                 .labels = &label,
                                 .n_labels = 1,
                                 .values = figures,
                                 .n_values = 12,
                                 .bounds = bounds,
                                 .n_bounds = 10,
                                 .ttl_ms = PUSH_TTL_DEFAULT};
    return fixture_apply(store, owner, mode, 0, &update, 1);
}

/* What a series takes is what its buckets take, after escaping. What is replaced makes room, what
 * has been removed too. */
static void test_text_counts(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 3500;
    push_store_configure(store, &config);
    struct push_owner *plugin = claimed(store, "p", NULL, "uid 1");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_histogram(plugin, PUSH_MERGE, "0123456789"),
                                  fixture_err.text);
    TEST_ASSERT_EQUAL_INT(-E2BIG, push_histogram(plugin, PUSH_MERGE, "\"\"\"\"\"\"\"\"\"\""));
    TEST_ASSERT_EQUAL_STRING("h: uid 1 would keep more than 3500 bytes (push.max-size-per-peer)",
                             fixture_err.text);
    TEST_ASSERT_EQUAL_INT(0, push_histogram(plugin, PUSH_REPLACE_ALL, "a123456789"));
    TEST_ASSERT_EQUAL_INT(-E2BIG, push_histogram(plugin, PUSH_MERGE, "b123456789"));
    push_store_remove_owner(store, plugin);
    TEST_ASSERT_EQUAL_INT(0, push_histogram(plugin, PUSH_MERGE, "b123456789"));
    push_owner_unref(store, plugin);
}

/* Names without series take room as well. */
static void test_owners_count(void) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 4000;
    push_store_configure(store, &config);
    struct push_claim claim = fixture_claim("uid 1");
    size_t n = 0;
    for (int r = 0; r == 0 && n < ARRAY_LEN(names); n++) {
        struct push_identity identity = {.plugin = names[n]};
        r = push_claim_check(store, &identity, &claim, &fixture_err);
        if (r == 0) {
            claimed(store, names[n], NULL, "uid 1");
        }
    }
    TEST_ASSERT_EQUAL_size_t(4, n);
    TEST_ASSERT_NOT_NULL(strstr(fixture_err.text, "push.max-size-per-peer"));
    struct push_identity known = {.plugin = "a"}, other = {.plugin = "x"};
    TEST_ASSERT_EQUAL_INT(0, push_claim_check(store, &known, &claim, NULL));
    claim.uid = 2;
    TEST_ASSERT_EQUAL_INT(0, push_claim_check(store, &other, &claim, NULL));
}

static struct push_owner *with_note(const char *plugin) {
    struct push_owner *owner = claimed(store, plugin, NULL, "uid 1");
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, owner, "param res", "480", NULL));
    return owner;
}

/* What was asked of the knobs of plugins that are gone makes room. */
static void test_who_makes_room(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 4000;
    push_store_configure(store, &config);
    push_owner_unref(store, with_note("a"));
    fixture_ms += 1000;
    push_owner_unref(store, with_note("b"));
    struct push_owner *c = with_note("c");
    struct push_claim claim = fixture_claim("uid 1");
    struct push_identity identities[] = {{.plugin = "a"}, {.plugin = "b"}, {.plugin = "d"}};
    TEST_ASSERT_EQUAL_INT(0, push_claim_check(store, &identities[2], &claim, NULL));
    TEST_ASSERT_NULL(push_store_find_owner(store, &identities[0]));
    TEST_ASSERT_NOT_NULL(push_store_find_owner(store, &identities[1]));
    push_owner_unref(store, c);
}

static void test_containers_have_a_share_each(void) {
    limit_peers(store);
    struct push_owner *a = claimed(store, "p", "a", "container");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, a, 50));
    struct push_owner *b = claimed(store, "p", "b", "container");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, b, 50));
}

/* What is removed, or becomes another's, is no longer counted. */
static void test_shares_follow_owners(void) {
    limit_peers(store);
    struct push_owner *a = claimed(store, "a", NULL, "http");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, a, 40));
    a = claimed(store, "a", NULL, "uid 1");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, a, 40));
    struct push_owner *b = claimed(store, "b", NULL, "http");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, b, 50));
    push_store_remove_owner(store, b);
    push_store_remove_owner(store, a);
    struct push_owner *c = claimed(store, "c", NULL, "http");
    TEST_ASSERT_EQUAL_INT(0, push_many(store, c, 50));
}

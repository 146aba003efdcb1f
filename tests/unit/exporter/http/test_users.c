#include "exporter/http/users.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unity.h>

#include "exporter/core/buf.h"

/* Cost 4 where not said otherwise: a check takes about a millisecond. */
#define HASH_SECRET "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
#define HASH_COLONS "$2y$04$ABCDEFGHIJKLMNOPQRSTUOBFxffrdkXRmqLwuJNvKgRvwxkKK7S5." /* a:b:c */
#define HASH_EMPTY "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq"
#define HASH_BYTE_FF "$2b$04$abcdefghijklmnopqrstuumJvuvSNJoR0RqktDEooeKLcxKJ/ec9C"
/* 72 times p, cost 5; the salt's last character has bits set that bcrypt does not use. */
#define HASH_LONG "$2a$05$0123456789012345678901tOK0wS93wWjKU3iLUTllGazxSjn3ztq"

#define P72 "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"

enum { MAX = 8, MAX_OF_ONE = 6 };

static struct users *users;
static struct http_checks checks;
static struct http_check pool[64];
static size_t n_pool;

void setUp(void) {
    checks = (struct http_checks){.max = MAX};
    n_pool = 0;
    users = users_create();
    TEST_ASSERT_NOT_NULL(users);
}

void tearDown(void) {
    users_destroy(TAKE(users));
}

static void add(const char *name, const char *hash) {
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, users_add(users, name, hash, &err), err.text);
}

/* The header for "name:password". */
static char *basic(const char *pair) {
    gnutls_datum_t in = {(unsigned char *)pair, (unsigned)strlen(pair)}, out;
    struct buf header = {0};
    TEST_ASSERT_EQUAL_INT(0, gnutls_base64_encode2(&in, &out));
    buf_printf(&header, "Basic %.*s", (int)out.size, (char *)out.data);
    gnutls_free(out.data);
    return buf_take(&header);
}

static enum users_verdict lookup(const char *pair) {
    char *header CLEANUP_FREE = basic(pair);
    return users_lookup(users, header);
}

static bool verify(const char *pair) {
    char *header CLEANUP_FREE = basic(pair);
    return users_verify(users, header);
}

static void test_hashes_that_are_refused(void) {
    static const struct {
        const char *hash;
        const char *says;
    } rows[] = {
        {"", "bcrypt hash"},
        {"secret", "bcrypt hash"},
        {"$1$abc$0123456789", "bcrypt hash"},
        {"$2x$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "bcrypt hash"},
        {"$3b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "bcrypt hash"},
        {"$2b$4$$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "bcrypt hash"},
        {"$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIr", "bcrypt hash"},
        {"$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrWW", "bcrypt hash"},
        {"$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsd eAXAGHnS4UpFFP8WIrW", "bcrypt hash"},
        {"$2b$03$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "4 to 18, got 3"},
        {"$2b$19$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "4 to 18, got 19"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT(-EINVAL, users_add(users, "eve", rows[i].hash, &err));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, rows[i].says), err.text);
    }
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT(-EINVAL, users_add(users, "a:b", HASH_SECRET, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "colon"));
}

static void test_malformed_headers_are_denied_at_once(void) {
    static const char *const headers[] = {
        NULL,
        "",
        "Basic",
        "Basic ",
        "Basic    ",
        "Basic\tYW5uOnNlY3JldA==",
        "Bearer YW5uOnNlY3JldA==",
        "Digest username=\"ann\"",
        "BasicYW5uOnNlY3JldA==",
        "Basic YW5uOnNlY3JldA",          /* padding missing */
        "Basic YW5uOnNlY3JldA=",         /* half of it */
        "Basic YW5uOnNlY3JldA===",       /* too much */
        "Basic YW5u=nNlY3JldA==",        /* in the middle */
        "Basic A===",                    /* six bits */
        "Basic ====",                    /* nothing but padding */
        "Basic YW5uOnNlY3J_dA==",        /* the alphabet of URLs */
        "Basic YW5uOnNlY3Jl\xff\xff==",  /* bytes that are no base64 */
        "Basic YW5uOnNlY3JldA==, Basic", /* two in one */
        "Basic YW5u OnNlY3JldA==",       /* a space within */
        "Basic YW5u",                    /* "ann": no colon */
        "Basic YW5uOnNlY3JldAA=",        /* "ann:secret\0" */
        "Basic YW4AOnNlY3JldA==",        /* "an\0:secret" */
    };
    add("ann", HASH_SECRET);
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        const char *shown = headers[i] != NULL ? headers[i] : "(none)";
        TEST_ASSERT_EQUAL_INT_MESSAGE(USERS_DENIED, users_lookup(users, headers[i]), shown);
        TEST_ASSERT_FALSE_MESSAGE(users_verify(users, headers[i]), shown);
    }
}

static void test_spellings_of_a_good_header(void) {
    static const char *const headers[] = {
        "Basic YW5uOnNlY3JldA==",   "basic YW5uOnNlY3JldA==",    "BASIC YW5uOnNlY3JldA==",
        "Basic   YW5uOnNlY3JldA==", "Basic YW5uOnNlY3JldA== \t",
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        users_destroy(TAKE(users));
        setUp();
        add("ann", HASH_SECRET);
        TEST_ASSERT_EQUAL_INT(USERS_UNKNOWN, users_lookup(users, headers[i]));
        TEST_ASSERT_TRUE_MESSAGE(users_verify(users, headers[i]), headers[i]);
        TEST_ASSERT_EQUAL_INT(USERS_GRANTED, users_lookup(users, headers[i]));
    }
}

static void test_who_comes_in(void) {
    static const struct {
        const char *pair;
        bool granted;
    } rows[] = {
        {"ann:secret", true},
        {"ann:Secret", false},
        {"ann:secret ", false},
        {"ann:", false},
        {"Ann:secret", false},
        {"an:nsecret", false},
        {"an:secret", false},
        {"annn:secret", false},
        {"bob:a:b:c", true},
        {"bob:a", false},
        {"bob:secret", false},
        {"carl\xc3\xa9:" P72, true},
        {"carl\xc3\xa9:" P72 "ignored", true}, /* bcrypt reads 72 bytes */
        {"carl\xc3\xa9:p", false},
        {"dora:\xff", true},
        {"dora:\xfe", false},
        {":secret", true},
        {":", false},
        {"empty:", true},
        {"empty:x", false},
        {"nobody:secret", false},
    };
    add("ann", HASH_SECRET);
    add("bob", HASH_COLONS);
    add("carl\xc3\xa9", HASH_LONG);
    add("dora", HASH_BYTE_FF);
    add("", HASH_SECRET);
    add("empty", HASH_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *pair = rows[i].pair;
        bool granted = rows[i].granted;
        TEST_ASSERT_EQUAL_INT_MESSAGE(USERS_UNKNOWN, lookup(pair), pair);
        TEST_ASSERT_EQUAL_INT_MESSAGE(granted, verify(pair), pair);
        TEST_ASSERT_EQUAL_INT_MESSAGE(granted ? USERS_GRANTED : USERS_DENIED, lookup(pair), pair);
        TEST_ASSERT_EQUAL_INT_MESSAGE(granted, verify(pair), pair);
    }
}

static void test_lengths_have_an_end(void) {
    struct buf pair CLEANUP_BUF = {0};
    add("ann", HASH_SECRET);
    buf_add_str(&pair, "ann:");
    while (pair.len < 700) { /* a header of 942 characters */
        buf_add_char(&pair, 's');
    }
    TEST_ASSERT_EQUAL_INT(USERS_UNKNOWN, lookup(buf_str(&pair)));
    TEST_ASSERT_FALSE(verify(buf_str(&pair)));
    while (pair.len < 800) { /* 1074 */
        buf_add_char(&pair, 's');
    }
    TEST_ASSERT_EQUAL_INT(USERS_DENIED, lookup(buf_str(&pair)));
}

static void test_a_flood_of_wrong_passwords_forgets_no_right_one(void) {
    enum { FLOOD = 65 }; /* one more than is remembered */
    add("ann", HASH_SECRET);
    TEST_ASSERT_TRUE(verify("ann:secret"));
    for (int i = 0; i < FLOOD; i++) {
        struct buf pair CLEANUP_BUF = {0};
        buf_printf(&pair, "ann:%d", i);
        TEST_ASSERT_FALSE(verify(buf_str(&pair)));
    }
    TEST_ASSERT_EQUAL_INT(USERS_GRANTED, lookup("ann:secret"));
    TEST_ASSERT_EQUAL_INT(USERS_UNKNOWN, lookup("ann:0"));
    TEST_ASSERT_EQUAL_INT(USERS_DENIED, lookup("ann:1"));
    TEST_ASSERT_EQUAL_INT(USERS_DENIED, lookup("ann:64"));
}

static void test_each_table_has_its_own_verdicts(void) {
    add("ann", HASH_SECRET);
    TEST_ASSERT_TRUE(verify("ann:secret"));
    users_destroy(TAKE(users));
    setUp();
    add("ann", HASH_COLONS);
    TEST_ASSERT_EQUAL_INT(USERS_UNKNOWN, lookup("ann:secret"));
    TEST_ASSERT_FALSE(verify("ann:secret"));
}

static void test_the_same_users_inherit_verdicts(void) {
    static const char *const hashes[] = {HASH_SECRET, HASH_EMPTY};
    add("ann", HASH_SECRET);
    verify("ann:secret");
    verify("ann:wrong");
    struct users *old CLEANUP_USERS = TAKE(users);
    for (int i = 0; i < 2; i++) {
        setUp();
        add("ann", hashes[i]);
        users_inherit(users, old);
        TEST_ASSERT_EQUAL_INT(i == 0 ? USERS_GRANTED : USERS_UNKNOWN, lookup("ann:secret"));
        TEST_ASSERT_EQUAL_INT(i == 0 ? USERS_DENIED : USERS_UNKNOWN, lookup("ann:wrong"));
        TEST_ASSERT_EQUAL(i == 0, verify("ann:secret"));
        tearDown();
    }
    setUp();
    add("ann", HASH_SECRET);
    add("bob", HASH_SECRET);
    users_inherit(users, old);
    TEST_ASSERT_EQUAL_INT(USERS_UNKNOWN, lookup("ann:secret"));
}

static void test_an_empty_table_lets_nobody_in(void) {
    TEST_ASSERT_FALSE(verify("ann:secret"));
}

static double verify_cpu_ms(const char *pair) {
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    TEST_ASSERT_FALSE(verify(pair));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) * 1e3 +
           (double)(after.tv_nsec - before.tv_nsec) / 1e6;
}

static void test_time_does_not_tell_who_exists(void) {
    add("ann", "$2b$08$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW");
    double known = verify_cpu_ms("ann:wrong");
    double unknown = verify_cpu_ms("nobody:wrong");
    double cached = verify_cpu_ms("nobody:wrong");
    TEST_ASSERT_TRUE(unknown > known / 3 && known > unknown / 3);
    TEST_ASSERT_TRUE(cached < unknown / 3);
}

static void test_unknown_names_take_each_of_the_costs(void) {
    add("ann", HASH_SECRET);
    add("bob", "$2b$08$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW");
    double quick = verify_cpu_ms("ann:wrong"), slow = verify_cpu_ms("bob:wrong");
    int n_quick = 0;
    enum { NAMES = 40 }; /* all alike by chance: once in 2^39 runs */
    for (int i = 0; i < NAMES; i++) {
        struct buf pair CLEANUP_BUF = {0};
        buf_printf(&pair, "nobody%d:wrong", i);
        n_quick += verify_cpu_ms(buf_str(&pair)) < (quick + slow) / 2;
    }
    TEST_ASSERT_TRUE(n_quick > 0 && n_quick < NAMES);
}

static atomic_bool stop;

static void *look_up_until_stopped(void *unused) {
    while (!atomic_load(&stop)) {
        enum users_verdict verdict = users_lookup(users, "Basic YW5uOnNlY3JldA==");
        if (verdict == USERS_DENIED) {
            return "the right password was denied";
        }
    }
    return unused;
}

static void test_lookups_while_another_thread_verifies(void) {
    pthread_t thread;
    void *complaint;
    add("ann", HASH_SECRET);
    atomic_store(&stop, false);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, look_up_until_stopped, NULL));
    for (int i = 0; i < 20; i++) {
        struct buf pair CLEANUP_BUF = {0};
        buf_printf(&pair, "ann:%d", i);
        verify(buf_str(&pair));
        verify("ann:secret");
    }
    atomic_store(&stop, true);
    pthread_join(thread, &complaint);
    TEST_ASSERT_NULL_MESSAGE(complaint, complaint);
}

/* ---- passwords that wait ---- */

static struct in6_addr address_of(const char *text) {
    struct in6_addr address;
    TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, text, &address));
    return address;
}

static struct http_check *make_check(const char *address) {
    struct http_check *check = &pool[n_pool++];
    *check = (struct http_check){.address = address_of(address)};
    return check;
}

static struct http_check *enqueue(const char *address) {
    struct http_check *check = make_check(address);
    TEST_ASSERT_NULL(http_checks_add(&checks, check));
    return check;
}

static void fail(const char *text, int64_t at_ns) {
    struct in6_addr address = address_of(text);
    http_checks_note_failure(&checks, &address, at_ns);
}

static void expect(const struct http_check *check) {
    TEST_ASSERT_EQUAL_PTR(check, http_checks_take(&checks));
}

static void test_a_few_go_in_order(void) {
    struct http_check *a = enqueue("::1");
    struct http_check *b = enqueue("::1");
    expect(a);
    struct http_check *c = enqueue("::1");
    expect(b);
    expect(c);
    expect(NULL);
    TEST_ASSERT_EQUAL_size_t(0, checks.n_waiting);
}

static void test_of_many_a_newcomer_waits_for_four(void) {
    checks.max = 40;
    for (int i = 0; i < 20; i++) {
        enqueue("::1");
    }
    const struct http_check *newcomer = enqueue("::1");
    for (int i = 1; i < HTTP_CHECKS_TURN; i++) {
        TEST_ASSERT_NOT_EQUAL(newcomer, http_checks_take(&checks));
        enqueue("::1");
    }
    expect(newcomer);
}

static void test_wrong_passwords_go_to_the_back(void) {
    struct http_check *never = enqueue("::ffff:10.0.0.1");
    fail("::ffff:10.0.0.2", 20);
    fail("::ffff:10.0.0.3", 10);
    struct http_check *late = enqueue("::ffff:10.0.0.2");
    struct http_check *early = enqueue("::ffff:10.0.0.3");
    expect(never);
    expect(early);
    expect(late);
}

static void test_addresses_that_guess_are_served_in_turn(void) {
    static const char *const addresses[] = {"::ffff:10.0.0.1", "::ffff:10.0.0.2"};
    for (int i = 0; i < 6; i++) {
        enqueue(addresses[i < 4 ? 0 : 1]);
    }
    int n_second = 0;
    for (int64_t now_ns = 1; now_ns <= 4; now_ns++) {
        struct in6_addr address = http_checks_take(&checks)->address;
        n_second += address.s6_addr[15] == 2;
        http_checks_note_failure(&checks, &address, now_ns);
    }
    TEST_ASSERT_EQUAL_INT(2, n_second);
}

static void test_one_address_has_a_share(void) {
    struct http_check *oldest = enqueue("2001:db8::1");
    for (int i = 1; i < MAX_OF_ONE; i++) {
        enqueue("2001:db8::2"); /* of the same /64 */
    }
    TEST_ASSERT_EQUAL_PTR(oldest, http_checks_add(&checks, make_check("2001:db8::3")));
    enqueue("2001:db8:0:1::1");
    TEST_ASSERT_EQUAL_size_t(MAX_OF_ONE + 1, checks.n_waiting);
}

static void test_the_last_in_order_makes_room(void) {
    fail("::ffff:10.0.0.2", 1);
    struct http_check *older = enqueue("::ffff:10.0.0.2");
    struct http_check *guess = enqueue("::ffff:10.0.0.2");
    for (int i = 0; i < 4; i++) {
        enqueue("::ffff:10.0.0.1");
    }
    enqueue("::ffff:10.0.0.3");
    enqueue("::ffff:10.0.0.4");
    TEST_ASSERT_EQUAL_PTR(older, http_checks_add(&checks, make_check("::ffff:10.0.0.5")));
    TEST_ASSERT_EQUAL_PTR(guess, http_checks_add(&checks, make_check("::ffff:10.0.0.6")));
    struct http_check *newcomer = make_check("::ffff:10.0.0.2");
    TEST_ASSERT_EQUAL_PTR(newcomer, http_checks_add(&checks, newcomer));
    TEST_ASSERT_EQUAL_size_t(MAX, checks.n_waiting);
}

static void test_more_addresses_than_are_remembered(void) {
    for (int i = 0; i < 2 * HTTP_CHECKS_MAX_FAILURES; i++) {
        char text[INET6_ADDRSTRLEN];
        snprintf(text, sizeof(text), "::ffff:10.0.%d.%d", i / 256, i % 256);
        fail(text, i + 1);
    }
    struct http_check *recent = enqueue("::ffff:10.0.1.255");
    struct http_check *forgotten = enqueue("::ffff:10.0.0.0");
    struct http_check *oldest = enqueue("::ffff:10.0.1.0");
    expect(forgotten);
    expect(oldest);
    expect(recent);
}

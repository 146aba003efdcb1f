#include "exporter/push/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/file.h"

static char directory[64];
static char path[80];
static struct error err;

void setUp(void) {
    snprintf(directory, sizeof(directory), "/tmp/test_push_table.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/table", directory);
}

void tearDown(void) {
    unlink(path);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rmdir(directory), "something was left behind");
}

/* Which does not count yet. */
static int hold(struct push_table *table, uint32_t id, size_t n_words, size_t key_len,
                struct push_entry **ret_entry) {
    static char key[8192];
    struct push_entry_spec spec = {
        .type = PUSH_ENTRY_SERIES,
        .detail = id,
        .n_words = n_words,
        .key = {{key, key_len / 2}, {key, key_len - key_len / 2}},
    };
    return push_table_add(table, &spec, ret_entry, &err);
}

static int add(struct push_table *table, uint32_t id, size_t n_words, size_t key_len,
               struct push_entry **ret_entry) {
    int r = hold(table, id, n_words, key_len, ret_entry);
    if (r == 0) {
        push_table_commit(table, *ret_entry);
    }
    return r;
}

struct seen {
    uint32_t first, last, last_id;
    size_t n;
    double sum;
};

static void see(const struct push_entry *entry, uint32_t id, void *context) {
    struct seen *seen = context;
    TEST_ASSERT_GREATER_THAN_UINT32(seen->last_id, id);
    seen->last_id = id;
    seen->first = seen->n++ == 0 ? entry->detail : seen->first;
    seen->last = entry->detail;
    for (size_t i = 0; i < entry->n_words; i++) {
        seen->sum += ((const double *)(const void *)entry->words)[i];
    }
}

static struct seen scan(const struct push_table *table) {
    struct seen seen = {0};
    size_t len = 0;
    const void *pages = push_table_pages(table, &len);
    TEST_ASSERT_EQUAL_UINT64(0, push_pages_scan(pages, len, see, &seen));
    return seen;
}

static struct seen scan_file(size_t expected_damage) {
    struct seen seen = {0};
    struct buf file CLEANUP_BUF = {0};
    size_t offset = 0;
    bool same_boot = false;
    TEST_ASSERT_EQUAL_INT(0, file_read_stored(path, 1 << 24, &file, &err));
    TEST_ASSERT_EQUAL_INT(0, push_table_recover(file.data, file.len, &offset, &same_boot, &err));
    TEST_ASSERT_TRUE(same_boot);
    TEST_ASSERT_EQUAL_UINT64(expected_damage,
                             push_pages_scan(file.data + offset, file.len - offset, see, &seen));
    return seen;
}

static void test_what_is_committed_counts(void) {
    struct push_table *table = NULL;
    struct push_entry *entry = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &table, &err));
    struct push_entry *entries[101];
    for (uint32_t id = 1; id <= 100; id++) {
        TEST_ASSERT_EQUAL_INT(0, hold(table, id, id % 7, id * 3, &entries[id]));
    }
    TEST_ASSERT_EQUAL_UINT64(0, scan(table).n);
    for (uint32_t id = 1; id <= 100; id++) {
        push_table_commit(table, entries[id]);
    }
    TEST_ASSERT_EQUAL_UINT64(100, scan(table).n);
    TEST_ASSERT_EQUAL_INT(0, hold(table, 101, 1, 9, &entry));
    push_table_remove(table, entry);
    TEST_ASSERT_EQUAL_INT(0, add(table, 102, 1, 4000, &entry));
    push_table_remove(table, entry);
    TEST_ASSERT_EQUAL_INT(0, add(table, 103, 1, 3000, &entry));
    TEST_ASSERT_EQUAL_INT(-1, access(path, F_OK));
    TEST_ASSERT_EQUAL_INT(0, push_table_publish(table, &err));
    push_table_destroy(table);
    struct seen seen = scan_file(0);
    TEST_ASSERT_EQUAL_UINT64(101, seen.n);
    TEST_ASSERT_EQUAL_UINT32(1, seen.first);
    TEST_ASSERT_EQUAL_UINT32(103, seen.last);
}

static void test_no_room(void) {
    struct push_table *table = NULL;
    struct push_entry *entry = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(NULL, 20 * 4096, &table, &err));
    TEST_ASSERT_EQUAL_INT(-E2BIG, add(table, 1, 500, 100, &entry));
    uint32_t n = 0;
    while (add(table, n + 1, 10, 1000, &entry) == 0) {
        n++;
    }
    TEST_ASSERT_EQUAL_UINT32(17 * 3, n); /* three to a page, three pages of header */
    TEST_ASSERT_NOT_NULL(strstr(err.text, "no room"));
    TEST_ASSERT_EQUAL_UINT64(n, scan(table).n);
    push_table_destroy(table);
}

/* What is removed makes room for others of any size, and the pages stay whole. */
static void test_room_is_used_again(void) {
    enum { N = 300, ROUNDS = 20000, MAX_BYTES = 40 * 4096 };
    static struct push_entry *entries[N];
    static size_t sizes[N];
    struct push_table *table = NULL;
    size_t used = 0, n = 0;
    unsigned seed = 1;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(NULL, MAX_BYTES, &table, &err));
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t i = (size_t)rand_r(&seed) % N;
        if (entries[i] != NULL) {
            TEST_ASSERT_EQUAL_UINT32(i, entries[i]->detail);
            push_table_remove(table, entries[i]);
            used -= sizes[i];
            n--;
            entries[i] = NULL;
        } else {
            size_t len = (size_t)rand_r(&seed) % (round % 100 == 0 ? 3000 : 300);
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, add(table, (uint32_t)i, 2, len, &entries[i]),
                                          err.text);
            sizes[i] = entries[i]->size;
            used += sizes[i];
            n++;
        }
        TEST_ASSERT_EQUAL_size_t(used, push_table_used(table));
        if (round % 64 == 0) {
            TEST_ASSERT_EQUAL_UINT64(n, scan(table).n);
        }
    }
    for (size_t i = 0; i < N; i++) {
        push_table_remove(table, entries[i]);
    }
    for (uint32_t i = 0; i < 37; i++) { /* as if nothing had been there */
        TEST_ASSERT_EQUAL_INT(0, add(table, i, 0, 4072, &entries[0]));
    }
    push_table_destroy(table);
}

static void test_changes(void) {
    struct push_table *table = NULL;
    struct push_entry *entry = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &table, &err));
    TEST_ASSERT_EQUAL_INT(0, add(table, 1, 3, 10, &entry));
    double *values = push_entry_values(entry);
    const struct push_change changes[] = {{&values[0], 1}, {&values[1], 20}, {&values[2], 300}};
    push_table_write(table, changes, 3);
    push_table_write(table, &(struct push_change){&values[0], 2}, 1);
    push_table_publish(table, &err);
    push_table_destroy(table);
    TEST_ASSERT_EQUAL_DOUBLE(322, scan_file(0).sum);
}

/* As after a kill between the note and the stores: what was noted is done, if it makes sense. */
static void test_what_was_under_way_is_finished(void) {
    struct push_table *table = NULL;
    struct push_entry *entry = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &table, &err));
    TEST_ASSERT_EQUAL_INT(0, add(table, 1, 2, 10, &entry));
    double *values = push_entry_values(entry);
    push_table_write(table, (struct push_change[]){{&values[0], 5}, {&values[1], 6}}, 2);
    push_table_publish(table, &err);
    push_table_destroy(table);

    struct buf file CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, file_read_stored(path, 1 << 24, &file, &err));
    const size_t n_redo_at = 56, redo_at = 64;
    double *first = (double *)(void *)(file.data + 3 * 4096 + sizeof(struct push_entry));
    TEST_ASSERT_EQUAL_DOUBLE(5, first[0]);
    first[0] = 0;
    first[1] = 0;
    *(uint32_t *)(void *)(file.data + n_redo_at) = 2;
    size_t offset;
    bool same_boot;
    TEST_ASSERT_EQUAL_INT(0, push_table_recover(file.data, file.len, &offset, &same_boot, &err));
    TEST_ASSERT_EQUAL_DOUBLE(5, first[0]);
    TEST_ASSERT_EQUAL_DOUBLE(6, first[1]);

    static const uint64_t offsets[] = {0, 4096, 3 * 4096 + 1, UINT64_MAX, 1 << 20, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        *(uint64_t *)(void *)(file.data + redo_at) = offsets[i];
        *(uint32_t *)(void *)(file.data + n_redo_at) = UINT32_MAX;
        TEST_ASSERT_EQUAL_INT(0,
                              push_table_recover(file.data, file.len, &offset, &same_boot, &err));
    }
}

static void test_damage_costs_the_rest_of_a_page(void) {
    struct push_table *table = NULL;
    struct push_entry *entry = NULL;
    struct push_entry *victim = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(NULL, 1 << 20, &table, &err));
    for (uint32_t id = 1; id <= 40; id++) {
        TEST_ASSERT_EQUAL_INT(0, add(table, id, 0, 1000, &entry)); /* four to a page */
        victim = id == 18 ? entry : victim;
    }
    size_t len = 0;
    const void *pages = push_table_pages(table, &len);
    for (size_t byte = 0; byte < 1024; byte++) {
        ((unsigned char *)victim)[byte] ^= 0x10;
        struct seen seen = {0};
        size_t n_damaged = push_pages_scan(pages, len, see, &seen);
        TEST_ASSERT_EQUAL_UINT64(1, n_damaged);
        TEST_ASSERT_EQUAL_UINT64(37, seen.n);
        ((unsigned char *)victim)[byte] ^= 0x10;
    }
    push_table_destroy(table);
}

static void test_files_that_are_none(void) {
    size_t offset;
    bool same_boot;
    char *data = calloc(1, 16384);
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_table_recover(data, 16384, &offset, &same_boot, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_table_recover(data, 0, &offset, &same_boot, &err));
    struct push_table *table = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &table, &err));
    push_table_publish(table, &err);
    push_table_destroy(table);
    struct buf file CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, file_read_stored(path, 1 << 24, &file, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL,
                          push_table_recover(file.data, 3 * 4096 - 1, &offset, &same_boot, &err));
    file.data[20] ^= 1;
    TEST_ASSERT_EQUAL_INT(0, push_table_recover(file.data, file.len, &offset, &same_boot, &err));
    TEST_ASSERT_FALSE(same_boot);
    file.data[8] = 9;
    TEST_ASSERT_EQUAL_INT(-EPROTO,
                          push_table_recover(file.data, file.len, &offset, &same_boot, &err));
    TEST_ASSERT_EQUAL_STRING("a table of version 9, this program knows 1", err.text);
    free(data);
}

/* One that could not be published is still in use while another takes its place. */
static void test_another_does_not_cut_it_off(void) {
    struct push_table *table = NULL, *other = NULL;
    struct push_entry *entry = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &table, &err));
    TEST_ASSERT_EQUAL_INT(0, add(table, 1, 1, 8, &entry));
    TEST_ASSERT_EQUAL_INT(0, push_table_create(path, 1 << 20, &other, &err));
    TEST_ASSERT_EQUAL_UINT64(1, scan(table).n);
    TEST_ASSERT_EQUAL_INT(0, push_table_publish(other, &err));
    push_table_destroy(table);
    TEST_ASSERT_EQUAL_UINT64(0, scan_file(0).n);
    push_table_destroy(other);
}

static void test_places_that_cannot_be(void) {
    struct push_table *table = NULL;
    TEST_ASSERT_EQUAL_INT(-ENOENT, push_table_create("/nonexistent/t", 1 << 20, &table, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "/nonexistent/t"));
}

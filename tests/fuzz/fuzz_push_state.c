/* Covers exporter/push/load.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/push/files.h"
#include "exporter/push/store.h"
#include "exporter/push/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct push_store *create(void) {
    struct push_store_config config = {
        .limits = {.max_owner_series = 500, .max_peer_bytes = 1 << 20},
        .ttl_ms = 1000,
        .table_bytes = 8 << 20,
    };
    struct push_store *store = NULL;
    int r = push_store_create(&config, &store, NULL);
    assert(r == 0);
    return store;
}

static void scrape(struct push_store *store) {
    struct snapshot snapshot = {0};
    struct push_reader *reader = push_reader_create(store);
    push_reader_collect(reader, &snapshot);
    snapshot_finish(&snapshot);
    push_reader_destroy(reader);
}

/* Every owner pushes to what it has, in turns. */
static void push(struct push_store *store) {
    static const double one = 1;
    static const char *const names[] = {"a", "fps", "h", "n_total"};
    for (struct push_owner *owner = NULL; (owner = push_store_next_owner(store, owner)) != NULL;) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            struct push_update update = {.name = names[i],
                                         .type = i == 0 ? PUSH_GAUGE : PUSH_COUNTER,
                                         .op = i == 2 ? PUSH_OBSERVE : PUSH_TOTAL,
                                         .values = &one,
                                         .n_values = 1,
                                         .ttl_ms = PUSH_TTL_DEFAULT};
            struct push_batch batch = {.start = 7, .updates = &update, .n_updates = 1};
            push_store_apply(store, owner, &batch, NULL, NULL);
        }
    }
}

/* Whatever was loaded can be scraped, pushed to, saved, loaded again, and is the same then.
 */
static void load(const void *pages, size_t len) {
    struct push_store *store = create();
    struct push_load_report report, again;
    push_store_load(store, pages, len, &report);
    scrape(store);
    push(store);
    scrape(store);
    report.n_series = push_store_stats(store).n_series;
    struct push_store *copy = create();
    size_t pages_len = 0, offset = 0, n_damaged = 0;
    struct buf saved CLEANUP_BUF = {0}, file CLEANUP_BUF = {0};
    while (push_store_copy_some(store, &saved, 1000)) {
    }
    push_state_encode(buf_str(&saved), saved.len, &file);
    int r = push_state_decode(file.data, file.len, &offset, &pages_len, &n_damaged, NULL);
    assert(r == 0 && n_damaged == 0);
    push_store_load(copy, file.data + offset, pages_len, &again);
    assert(again.n_series == report.n_series && again.n_damaged_pages == 0);
    push_store_remove_if(store, NULL, NULL);
    push_store_destroy(store);
    push_store_destroy(copy);
}

/* Bits that libFuzzer flips would never get past the checks: it makes up the rest, the checks are
 * put right here. The pages are cut to the entries' sizes. */
static void mend(char *pages, size_t len) {
    for (size_t at = 0; at + sizeof(struct push_entry) <= len;) {
        struct push_entry *entry = (struct push_entry *)(void *)(pages + at);
        size_t room = len - at < PUSH_PAGE_SIZE - at % PUSH_PAGE_SIZE
                          ? len - at
                          : PUSH_PAGE_SIZE - at % PUSH_PAGE_SIZE;
        entry->size = (uint16_t)(entry->size & ~7u);
        size_t needed = sizeof(*entry) + entry->n_words * 8u + entry->key_len;
        if (entry->size == 0 || entry->size > room || needed > entry->size) {
            return;
        }
        if (entry->commit != PUSH_ENTRY_FREE) {
            entry->commit = push_entry_check(entry);
        }
        at += entry->size;
    }
}

/* The first byte says what the rest is: a state file, a table, pages, pages with checks mended. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (len < 1) {
        return 0;
    }
    char *file = malloc(len); /* aligned, and changed */
    memcpy(file, data + 1, len - 1);
    size_t n = len - 1, offset = 0, pages_len = 0, n_damaged = 0;
    bool same_boot = false;
    switch (data[0] % 4) {
    case 0:
        if (push_state_decode(file, n, &offset, &pages_len, &n_damaged, NULL) == 0) {
            assert(offset + pages_len <= n);
            load(file + offset, pages_len);
        }
        break;
    case 1:
        if (push_table_recover(file, n, &offset, &same_boot, NULL) == 0) {
            load(file + offset, n - offset);
        }
        break;
    case 2:
        load(file, n);
        break;
    case 3:
        mend(file, n);
        load(file, n);
        break;
    }
    free(file);
    return 0;
}

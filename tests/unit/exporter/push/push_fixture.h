#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/container_of.h"
#include "exporter/metrics/exposition.h"
#include "exporter/push/claim.h"
#include "exporter/push/store.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

/* A store under a clock of its own, and short ways to push to it. */

static int64_t fixture_ms = 1000000;

static inline int64_t fixture_now_ms(void) {
    return fixture_ms;
}

static const struct push_limits fixture_limits = {
    .max_owner_series = 50,
    .max_peer_bytes = 1 << 20,
};

static inline struct push_store_config fixture_config(void) {
    return (struct push_store_config){
        .limits = fixture_limits,
        .table_bytes = 4 << 20,
        .ttl_ms = 300000,
        .now_ms = fixture_now_ms,
    };
}

static inline struct push_owner *fixture_plugin(struct push_store *store, const char *name) {
    struct push_owner *owner = NULL;
    struct error err = {0};
    struct push_identity identity = {.plugin = name};
    int r = push_store_owner(store, &identity, &owner, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return owner;
}

static inline struct push_owner *fixture_group(struct push_store *store, const char *job) {
    struct push_owner *owner = NULL;
    struct error err = {0};
    struct push_identity identity = {.job = job, .group = true};
    int r = push_store_owner(store, &identity, &owner, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return owner;
}

/* As push_claim_format writes it: "uid 1000", "http localhost", "container". */
static inline struct push_claim fixture_claim(const char *text) {
    static const char *const kinds[] = {"http",  "unverified", "pywaggle",
                                        "ended", "uid",        "container"};
    struct push_claim claim = {0};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        claim.kind =
            strncmp(text, kinds[i], strlen(kinds[i])) == 0 ? (enum push_claim_kind)i : claim.kind;
    }
    const char *uid = strstr(text, "uid ");
    claim.has_uid = uid != NULL;
    claim.uid = uid != NULL ? (uid_t)strtoul(uid + 4, NULL, 10) : 0;
    if (strcmp(text, "http localhost") == 0) {
        claim.address = in6addr_loopback;
    } else if (claim.kind == PUSH_CLAIM_HTTP && strncmp(text, "http 10.", 8) == 0) {
        char mapped[64];
        snprintf(mapped, sizeof(mapped), "::ffff:%s", text + 5);
        TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, mapped, &claim.address));
    }
    return claim;
}

static inline int fixture_claim_as(struct push_store *store, struct push_owner *owner,
                                   const char *who, struct error *err) {
    struct push_claim claim = fixture_claim(who);
    return push_claim(store, owner, &claim, false, err);
}

static struct error fixture_err;

static inline int fixture_apply(struct push_store *store, struct push_owner *owner,
                                enum push_mode mode, uint64_t start,
                                const struct push_update *updates, size_t n) {
    struct push_batch batch = {.mode = mode, .start = start, .updates = updates, .n_updates = n};
    fixture_err.text[0] = '\0';
    return push_store_apply(store, owner, &batch, NULL, &fixture_err);
}

/* One update without labels. */
static inline int fixture_push(struct push_store *store, struct push_owner *owner, const char *name,
                               enum push_type type, enum push_op op, double value) {
    struct push_update update = {
        .name = name,
        .type = type,
        .op = op,
        .values = &value,
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    return fixture_apply(store, owner, PUSH_MERGE, 7, &update, 1);
}

/* For push_store_remove_if: the series of that name. */
static inline bool fixture_is_named(const struct push_series_view *series, void *name) {
    return strcmp(series->name, name) == 0;
}

/* A copy of the table's pages; valid until the next one. */
static inline char *fixture_pages(struct push_store *store, size_t *ret_len) {
    static struct buf pages;
    buf_reset(&pages);
    TEST_ASSERT_FALSE(push_store_copy_some(store, &pages, SIZE_MAX));
    *ret_len = pages.len;
    return pages.data;
}

/* A part as text, without HELP lines; drops the part. The caller frees the text. */
static inline char *fixture_text(struct exposition_part *part) {
    struct buf page CLEANUP_BUF = {0};
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT, 0}, &part, 1, NULL);
    exposition_part_unref(part);
    struct buf kept = {0};
    buf_add_str(&kept, "");
    for (char *save = NULL, *line = strtok_r(page.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "# HELP", 6) != 0) {
            buf_printf(&kept, "%s\n", line);
        }
    }
    char *text = buf_take(&kept);
    return text != NULL ? text : strdup("");
}

/* What a scrape would show. */
static inline char *fixture_scrape(struct push_store *store) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct push_reader *reader = push_reader_create(store);
    push_reader_collect(reader, &snapshot);
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    push_reader_destroy(reader);
    return fixture_text(part);
}

static inline void fixture_expect(struct push_store *store, const char *expected) {
    char *page = fixture_scrape(store);
    TEST_ASSERT_EQUAL_STRING(expected, page);
    free(page);
}

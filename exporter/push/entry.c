#include "exporter/push/entry.h"

#include <libdeflate.h>

uint32_t push_entry_check(const struct push_entry *entry) {
    const char *from = (const char *)&entry->size;
    uint32_t crc = libdeflate_crc32(0, from, (size_t)((const char *)&entry->dead - from));
    crc = libdeflate_crc32(crc, entry->words + entry->n_words, entry->key_len);
    return crc != 0 ? crc : 1;
}

static bool is_sound(const struct push_entry *entry, size_t room) {
    size_t needed = sizeof(*entry) + entry->n_words * sizeof(uint64_t) + entry->key_len;
    return entry->size <= room && entry->size % sizeof(uint64_t) == 0 && needed <= entry->size &&
           entry->commit == push_entry_check(entry);
}

/* False: the page is damaged. */
static bool scan_page(const char *page, size_t len,
                      void (*visit)(const struct push_entry *entry, void *context), void *context) {
    for (size_t at = 0; at + sizeof(struct push_entry) <= len;) {
        const struct push_entry *entry = (const struct push_entry *)(const void *)(page + at);
        if (entry->commit == 0) {
            return true;
        }
        if (!is_sound(entry, len - at)) {
            return false;
        }
        if (entry->dead == 0) {
            visit(entry, context);
        }
        at += entry->size;
    }
    return true;
}

size_t push_pages_scan(const void *pages, size_t len,
                       void (*visit)(const struct push_entry *entry, void *context),
                       void *context) {
    size_t n_damaged = 0;
    for (size_t at = 0; at < len; at += PUSH_PAGE_SIZE) {
        size_t left = len - at;
        size_t page_len = left < PUSH_PAGE_SIZE ? left : PUSH_PAGE_SIZE;
        n_damaged += scan_page((const char *)pages + at, page_len, visit, context) ? 0 : 1;
    }
    return n_damaged;
}

#include "exporter/push/table.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum { TABLE_VERSION = 1, TABLE_GROW_BYTES = 256 << 10, TABLE_PAGES_AT = 3 * PUSH_PAGE_SIZE };

#define TABLE_BYTE_ORDER UINT32_C(0x01020304)

static const char magic[8] = "waappush";

struct redo {
    uint64_t offset; /* in the file */
    uint64_t word;   /* its new value */
};

/* The file begins with it; pages begin at TABLE_PAGES_AT. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    char boot_id[40];
    uint32_t n_redo; /* changes to complete before the table is used. Stored last */
    uint32_t unused;
    struct redo redo[PUSH_TABLE_MAX_CHANGES];
};

_Static_assert(sizeof(struct header) <= TABLE_PAGES_AT, "the header has three pages");

/* A page is a chain of entries and free entries; the size of each leads to the next. */
struct push_table {
    char *base;
    size_t max_bytes;
    size_t allocated;
    size_t used;     /* bytes of entries */
    uint16_t *rooms; /* of each page: upper bound of its largest free entry */
    size_t n_pages, cap_pages;
    size_t page;    /* where the search for room begins */
    size_t rest;    /* in that page, a free entry; 0: not known */
    int fd;         /* -1: in memory */
    char *path;     /* NULL: in memory */
    char *new_path; /* until it is published, then NULL */
};

/* ---- checks ---- */

uint32_t push_entry_check(const struct push_entry *entry) {
    const char *from = (const char *)&entry->size;
    uint32_t crc = libdeflate_crc32(0, from, (size_t)((const char *)entry->words - from));
    crc = libdeflate_crc32(crc, entry->words + entry->n_words, entry->key_len);
    return crc > PUSH_ENTRY_TAKEN ? crc : crc + PUSH_ENTRY_TAKEN + 1;
}

static uint32_t commit_of(const void *pages, size_t len, uint32_t id) {
    size_t at = ((size_t)id - 1) * sizeof(uint64_t);
    return id > 0 && at + sizeof(uint64_t) <= len
               ? ((const struct push_entry *)(const void *)((const char *)pages + at))->commit
               : 0;
}

uint32_t push_entry_link(const struct push_entry *entry, const void *pages, size_t len) {
    bool has_detail = entry->type == PUSH_ENTRY_HELP || entry->type == PUSH_ENTRY_SERIES ||
                      entry->type == PUSH_ENTRY_TOTAL || entry->type == PUSH_ENTRY_MEAN;
    uint32_t detail = has_detail ? commit_of(pages, len, entry->detail) : 0;
    return commit_of(pages, len, entry->owner) ^ detail;
}

static bool is_free(const struct push_entry *entry) {
    return entry->commit == PUSH_ENTRY_FREE || entry->commit == PUSH_ENTRY_TAKEN;
}

static bool is_sound(const struct push_entry *entry, size_t room) {
    if (entry->size == 0 || entry->size > room || entry->size % sizeof(uint64_t) != 0) {
        return false;
    }
    if (is_free(entry)) {
        return true;
    }
    size_t needed = sizeof(*entry) + entry->n_words * sizeof(uint64_t) + entry->key_len;
    return room >= sizeof(*entry) && needed <= entry->size &&
           entry->commit == push_entry_check(entry);
}

/* False: the page is damaged. */
static bool scan_page(const char *pages, size_t at, size_t end,
                      void (*visit)(const struct push_entry *entry, uint32_t id, void *context),
                      void *context) {
    while (at + sizeof(uint64_t) <= end) {
        const struct push_entry *entry = (const struct push_entry *)(const void *)(pages + at);
        if (entry->commit == 0) {
            return true;
        }
        if (!is_sound(entry, end - at)) {
            return false;
        }
        if (!is_free(entry)) {
            visit(entry, (uint32_t)(at / sizeof(uint64_t) + 1), context);
        }
        at += entry->size;
    }
    return true;
}

size_t push_pages_scan(const void *pages, size_t len,
                       void (*visit)(const struct push_entry *entry, uint32_t id, void *context),
                       void *context) {
    size_t n_damaged = 0;
    for (size_t at = 0; at < len; at += PUSH_PAGE_SIZE) {
        size_t end = len - at < PUSH_PAGE_SIZE ? len : at + PUSH_PAGE_SIZE;
        n_damaged += scan_page(pages, at, end, visit, context) ? 0 : 1;
    }
    return n_damaged;
}

/* ---- life ---- */

static void read_boot_id(char id[static 40]) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/proc/sys/kernel/random/boot_id", &text, NULL) == 0) {
        strncpy(id, buf_str(&text), 39);
    }
}

/* A full file system must fail here: a write to the mapping cannot. */
static int allocate(struct push_table *table, size_t bytes, struct error *err) {
    bytes = bytes < table->max_bytes ? bytes : table->max_bytes;
    if (table->fd >= 0) {
        int code =
            posix_fallocate(table->fd, (off_t)table->allocated, (off_t)(bytes - table->allocated));
        if (code != 0) {
            (void)!ftruncate(table->fd, (off_t)table->allocated); /* it may have grown */
            errno = code;
            return error_set(err, -code, "no room in %s: %m", table->path);
        }
    }
    table->allocated = bytes;
    return 0;
}

static int open_file(struct push_table *table, const char *path, struct error *err) {
    struct buf new_path = {0};
    buf_printf(&new_path, "%s.new", path);
    table->new_path = buf_take(&new_path);
    table->path = mem_strdup(path);
    table->fd = file_create_own(table->new_path, 0600, err);
    return table->fd < 0 ? table->fd : 0;
}

static int map(struct push_table *table, struct error *err) {
    int flags = table->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *base = mmap(NULL, table->max_bytes, PROT_READ | PROT_WRITE, flags, table->fd, 0);
    if (base == MAP_FAILED) {
        return error_set(err, -errno, "map %zu bytes: %m", table->max_bytes);
    }
    table->base = base;
    int r = allocate(table, TABLE_PAGES_AT, err);
    if (r < 0) {
        return r;
    }
    struct header *header = base;
    memcpy(header->magic, magic, sizeof(magic));
    header->version = TABLE_VERSION;
    header->byte_order = TABLE_BYTE_ORDER;
    read_boot_id(header->boot_id);
    return 0;
}

int push_table_create(const char *path, size_t max_bytes, struct push_table **ret_table,
                      struct error *err) {
    struct push_table *table = mem_zalloc(1, sizeof(*table));
    size_t least = TABLE_PAGES_AT + PUSH_PAGE_SIZE;
    table->max_bytes = (max_bytes > least ? max_bytes : least) & ~(size_t)(PUSH_PAGE_SIZE - 1);
    table->fd = -1;
    int r = path != NULL ? open_file(table, path, err) : 0;
    if (r == 0) {
        r = map(table, err);
    }
    if (r < 0) {
        push_table_destroy(table);
        return r;
    }
    *ret_table = table;
    return 0;
}

void push_table_destroy(struct push_table *table) {
    if (table == NULL) {
        return;
    }
    if (table->base != NULL) {
        munmap(table->base, table->max_bytes);
    }
    if (table->fd >= 0) {
        close(table->fd);
        if (table->new_path != NULL) {
            unlink(table->new_path);
        }
    }
    free(table->rooms);
    free(table->new_path);
    free(table->path);
    free(table);
}

int push_table_publish(struct push_table *table, struct error *err) {
    if (table->new_path == NULL) {
        return 0;
    }
    if (rename(table->new_path, table->path) < 0) {
        return error_set(err, -errno, "rename %s to %s: %m", table->new_path, table->path);
    }
    free(TAKE(table->new_path));
    return 0;
}

/* ---- room ---- */

static struct push_entry *entry_at(const struct push_table *table, size_t page, size_t at) {
    return (struct push_entry *)(void *)(table->base + TABLE_PAGES_AT + page * PUSH_PAGE_SIZE + at);
}

static void set_free(struct push_entry *entry, size_t size) {
    entry->size = (uint16_t)size;
    __atomic_store_n(&entry->commit, PUSH_ENTRY_FREE, __ATOMIC_RELEASE);
}

/* Joins free entries of the page that follow each other; finds one of that size, or NULL. */
static struct push_entry *search_page(struct push_table *table, size_t page, size_t size) {
    size_t largest = 0;
    for (size_t at = 0; at < PUSH_PAGE_SIZE;) {
        struct push_entry *entry = entry_at(table, page, at);
        size_t next = at + entry->size;
        if (entry->commit != PUSH_ENTRY_FREE) {
            at = next;
            continue;
        }
        for (const struct push_entry *other;
             next < PUSH_PAGE_SIZE &&
             (other = entry_at(table, page, next))->commit == PUSH_ENTRY_FREE;) {
            next += other->size;
            __atomic_store_n(&entry->size, (uint16_t)(next - at), __ATOMIC_RELEASE);
        }
        if (entry->size >= size) {
            return entry;
        }
        largest = entry->size > largest ? entry->size : largest;
        at = next;
    }
    table->rooms[page] = (uint16_t)largest;
    return NULL;
}

static int add_page(struct push_table *table, struct error *err) {
    size_t page = table->n_pages;
    size_t end = TABLE_PAGES_AT + (page + 1) * PUSH_PAGE_SIZE;
    if (end > table->max_bytes) {
        return error_set(err, -ENOSPC, "no room: the table has its full size of %zu bytes",
                         table->max_bytes);
    }
    if (end > table->allocated) {
        int r = allocate(table, table->allocated + TABLE_GROW_BYTES, err);
        if (r == -ENOSPC) { /* a single page may still be had */
            r = allocate(table, end, err);
        }
        if (r < 0) {
            return r;
        }
    }
    ARRAY_GROW(&table->rooms, &table->cap_pages, page + 1);
    table->n_pages = page + 1;
    table->rooms[page] = PUSH_PAGE_SIZE;
    set_free(entry_at(table, page, 0), PUSH_PAGE_SIZE);
    return 0;
}

/* A free entry of at least that size: in the page of the last one, in another, in a new one. */
static int find_room(struct push_table *table, size_t size, struct push_entry **ret_entry,
                     struct error *err) {
    if (table->rest != 0 && entry_at(table, table->page, table->rest)->size >= size) {
        *ret_entry = entry_at(table, table->page, table->rest);
        return 0;
    }
    table->rest = 0; /* it may be joined with others */
    for (size_t i = 0; i < table->n_pages; i++) {
        size_t page =
            table->page + i < table->n_pages ? table->page + i : table->page + i - table->n_pages;
        *ret_entry = table->rooms[page] >= size ? search_page(table, page, size) : NULL;
        if (*ret_entry != NULL) {
            table->page = page;
            return 0;
        }
    }
    int r = add_page(table, err);
    if (r == 0) {
        table->page = table->n_pages - 1;
        *ret_entry = entry_at(table, table->page, 0);
    }
    return r;
}

/* Splits a free entry in two. The page is a valid chain at every instruction. */
static void split(struct push_table *table, struct push_entry *entry, size_t size) {
    size_t left = entry->size - size;
    table->rest = 0;
    if (left > 0) {
        struct push_entry *rest = (struct push_entry *)(void *)((char *)entry + size);
        set_free(rest, left);
        __atomic_store_n(&entry->size, (uint16_t)size, __ATOMIC_RELEASE);
        table->rest = (size_t)((char *)rest - (char *)entry_at(table, table->page, 0));
    }
}

/* ---- entries ---- */

size_t push_table_size(const struct push_entry_spec *spec) {
    size_t size = sizeof(struct push_entry) + spec->n_words * sizeof(uint64_t) + spec->key[0].len +
                  spec->key[1].len;
    return (size + 7) & ~(size_t)7;
}

static void copy(void *to, const struct push_text *text) {
    if (text->len > 0) {
        memcpy(to, text->data, text->len);
    }
}

int push_table_add(struct push_table *table, const struct push_entry_spec *spec,
                   struct push_entry **ret_entry, struct error *err) {
    size_t size = push_table_size(spec);
    if (size > PUSH_PAGE_SIZE) {
        return error_set(err, -E2BIG,
                         "all labels, values and bounds take %zu bytes, at most %d fit", size,
                         PUSH_PAGE_SIZE);
    }
    struct push_entry *entry = NULL;
    int r = find_room(table, size, &entry, err);
    if (r < 0) {
        return r;
    }
    split(table, entry, size);
    __atomic_store_n(&entry->commit, PUSH_ENTRY_TAKEN, __ATOMIC_RELEASE);
    entry->type = (uint8_t)spec->type;
    entry->flags = spec->flags;
    entry->n_words = (uint16_t)spec->n_words;
    entry->key_len = (uint16_t)(spec->key[0].len + spec->key[1].len);
    entry->owner = spec->owner;
    entry->detail = spec->detail;
    memset(entry->words, 0, spec->n_words * sizeof(uint64_t));
    copy(push_entry_key(entry), &spec->key[0]);
    copy(push_entry_key(entry) + spec->key[0].len, &spec->key[1]);
    table->used += size;
    *ret_entry = entry;
    return 0;
}

void push_table_commit(struct push_table *table, struct push_entry *entry) {
    size_t len = 0;
    const void *pages = push_table_pages(table, &len);
    entry->link = push_entry_link(entry, pages, len);
    __atomic_store_n(&entry->commit, push_entry_check(entry), __ATOMIC_RELEASE);
}

void push_table_remove(struct push_table *table, struct push_entry *entry) {
    if (table == NULL || entry == NULL) {
        return;
    }
    size_t page = (size_t)((char *)entry - table->base - TABLE_PAGES_AT) / PUSH_PAGE_SIZE;
    __atomic_store_n(&entry->commit, PUSH_ENTRY_FREE, __ATOMIC_RELEASE);
    table->used -= entry->size;
    table->rooms[page] = PUSH_PAGE_SIZE; /* upper bound: neighbours may be free as well */
}

uint32_t push_table_id(const struct push_table *table, const struct push_entry *entry) {
    size_t at = (size_t)((const char *)entry - table->base - TABLE_PAGES_AT);
    return (uint32_t)(at / sizeof(uint64_t) + 1);
}

/* ---- words ---- */

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void store(double *at, double value) {
    __atomic_store_n((uint64_t *)(void *)at, bits_of(value), __ATOMIC_RELEASE);
}

static void note_changes(struct push_table *table, const struct push_change *changes, size_t n) {
    struct header *header = (struct header *)(void *)table->base;
    for (size_t i = 0; i < n; i++) {
        header->redo[i] = (struct redo){
            .offset = (uint64_t)((char *)changes[i].at - table->base),
            .word = bits_of(changes[i].value),
        };
    }
    __atomic_store_n(&header->n_redo, (uint32_t)n, __ATOMIC_RELEASE);
}

void push_table_write(struct push_table *table, const struct push_change *changes, size_t n) {
    bool noted = n > 1 && table->fd >= 0;
    if (noted) {
        note_changes(table, changes, n);
    }
    for (size_t i = 0; i < n; i++) {
        store(changes[i].at, changes[i].value);
    }
    if (noted) {
        __atomic_store_n(&((struct header *)(void *)table->base)->n_redo, 0, __ATOMIC_RELEASE);
    }
}

/* ---- what there is ---- */

const void *push_table_pages(const struct push_table *table, size_t *ret_len) {
    *ret_len = table->n_pages * PUSH_PAGE_SIZE;
    return table->base + TABLE_PAGES_AT;
}

size_t push_table_used(const struct push_table *table) {
    return table->used;
}

bool push_table_is_file(const struct push_table *table) {
    return table->fd >= 0;
}

/* ---- after the end ---- */

static void redo(char *data, size_t len, const struct header *header) {
    for (size_t i = 0; i < header->n_redo && i < PUSH_TABLE_MAX_CHANGES; i++) {
        uint64_t offset = header->redo[i].offset;
        bool inside = offset >= TABLE_PAGES_AT && offset % sizeof(uint64_t) == 0 &&
                      offset <= len - sizeof(uint64_t);
        if (inside) {
            memcpy(data + offset, &header->redo[i].word, sizeof(uint64_t));
        }
    }
}

int push_table_recover(void *data, size_t len, size_t *ret_offset, bool *ret_same_boot,
                       struct error *err) {
    const struct header *header = data;
    if (len < TABLE_PAGES_AT || memcmp(header->magic, magic, sizeof(magic)) != 0 ||
        header->byte_order != TABLE_BYTE_ORDER) {
        return error_set(err, -EINVAL, "not a table of pushed series");
    }
    if (header->version != TABLE_VERSION) {
        return error_set(err, -EPROTO, "a table of version %u, this program knows %d",
                         header->version, TABLE_VERSION);
    }
    char boot_id[40] = {0};
    read_boot_id(boot_id);
    *ret_same_boot = memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0;
    redo(data, len, header);
    *ret_offset = TABLE_PAGES_AT;
    return 0;
}

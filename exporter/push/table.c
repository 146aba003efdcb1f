#include "exporter/push/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"

enum { TABLE_VERSION = 1, TABLE_GROW_BYTES = 256 << 10, TABLE_PAGES_AT = 3 * PUSH_PAGE_SIZE };

#define TABLE_BYTE_ORDER UINT32_C(0x01020304)

static const char magic[8] = "waappush";

struct redo {
    uint64_t offset; /* in the file */
    uint64_t word;   /* what it becomes: doing it twice does no harm */
};

/* The file begins with it; entries begin at TABLE_PAGES_AT. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    char boot_id[40];
    uint32_t n_redo; /* what must be done before the table is used. Stored last */
    uint32_t unused;
    struct redo redo[PUSH_TABLE_MAX_CHANGES];
};

_Static_assert(sizeof(struct header) <= TABLE_PAGES_AT, "the header has three pages");

struct push_table {
    char *base;
    size_t max_bytes;
    size_t allocated;
    size_t committed; /* entries before it count */
    size_t tail;      /* where the next one goes */
    size_t dead;
    int fd;         /* -1: in memory */
    char *path;     /* NULL: in memory */
    char *new_path; /* where it is until it is published; NULL: was published */
};

/* ---- life ---- */

static void read_boot_id(char id[static 40]) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/proc/sys/kernel/random/boot_id", &text, NULL) == 0) {
        strncpy(id, buf_str(&text), 39);
    }
}

/* What a file system cannot give now it could not give later, when there is no way to fail. */
static int allocate(struct push_table *table, size_t bytes, struct error *err) {
    bytes = bytes < table->max_bytes ? bytes : table->max_bytes;
    if (table->fd >= 0) {
        int code =
            posix_fallocate(table->fd, (off_t)table->allocated, (off_t)(bytes - table->allocated));
        if (code != 0) {
            (void)!ftruncate(table->fd, (off_t)table->allocated); /* some got longer all the same */
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
    table->path = strdup(path);
    if (table->new_path == NULL || table->path == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", path);
    }
    /* Another one that is there may be mapped: by us, where it could not be published. */
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
    int r = allocate(table, TABLE_PAGES_AT + PUSH_PAGE_SIZE, err);
    if (r < 0) {
        return r;
    }
    struct header *header = base;
    memcpy(header->magic, magic, sizeof(magic));
    header->version = TABLE_VERSION;
    header->byte_order = TABLE_BYTE_ORDER;
    read_boot_id(header->boot_id);
    table->tail = TABLE_PAGES_AT;
    table->committed = TABLE_PAGES_AT;
    return 0;
}

int push_table_create(const char *path, size_t max_bytes, struct push_table **ret_table,
                      struct error *err) {
    struct push_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return error_set(err, -ENOMEM, "push table: out of memory");
    }
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

/* ---- entries ---- */

size_t push_table_size(const struct push_entry_spec *spec) {
    size_t size = sizeof(struct push_entry) + spec->n_words * sizeof(uint64_t) + spec->key[0].len +
                  spec->key[1].len;
    return (size + 7) & ~(size_t)7;
}

/* Where the next entry of that size goes: not across the end of a page. */
static int find_place(struct push_table *table, size_t size, size_t reserve, size_t *ret_place,
                      struct error *err) {
    size_t place = table->tail;
    if (place % PUSH_PAGE_SIZE + size > PUSH_PAGE_SIZE) {
        place = (place + PUSH_PAGE_SIZE - 1) & ~(size_t)(PUSH_PAGE_SIZE - 1);
    }
    if (place + size + reserve > table->max_bytes) {
        return error_set(err, -ENOSPC, "no room: the table has its full size of %zu bytes",
                         table->max_bytes);
    }
    if (place + size > table->allocated) {
        int r = allocate(table, table->allocated + TABLE_GROW_BYTES, err);
        if (r == -ENOSPC) { /* the last pages may still be had */
            r = allocate(table, table->allocated + PUSH_PAGE_SIZE, err);
        }
        if (r < 0) {
            return r;
        }
    }
    *ret_place = place;
    return 0;
}

static void copy(void *to, const void *from, size_t n) {
    if (n > 0) {
        memcpy(to, from, n);
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
    size_t place = 0;
    int r = find_place(table, size, spec->reserve, &place, err);
    if (r < 0) {
        return r;
    }
    struct push_entry *entry = (struct push_entry *)(void *)(table->base + place);
    *entry = (struct push_entry){
        .size = (uint16_t)size,
        .type = (uint8_t)spec->type,
        .n_words = (uint16_t)spec->n_words,
        .key_len = (uint16_t)(spec->key[0].len + spec->key[1].len),
        .id = spec->id,
        .owner = spec->owner,
        .detail = spec->detail,
    };
    if (spec->words != NULL) {
        copy(entry->words, spec->words, spec->n_words * sizeof(uint64_t));
    }
    copy(push_entry_key(entry), spec->key[0].data, spec->key[0].len);
    copy(push_entry_key(entry) + spec->key[0].len, spec->key[1].data, spec->key[1].len);
    table->tail = place + size;
    *ret_entry = entry;
    return 0;
}

/* In order, so that a page never has an entry that counts behind one that does not. */
void push_table_commit(struct push_table *table) {
    while (table->committed < table->tail) {
        struct push_entry *entry = (struct push_entry *)(void *)(table->base + table->committed);
        size_t left = PUSH_PAGE_SIZE - table->committed % PUSH_PAGE_SIZE;
        if (left < sizeof(*entry) || entry->size == 0) {
            table->committed += left;
            continue;
        }
        __atomic_store_n(&entry->commit, push_entry_check(entry), __ATOMIC_RELEASE);
        table->committed += entry->size;
    }
}

/* False: the file system does not take it. */
static bool give_back(struct push_table *table, size_t wanted) {
    if (table->fd < 0) {
        madvise(table->base + wanted, table->allocated - wanted, MADV_DONTNEED);
    } else if (ftruncate(table->fd, (off_t)wanted) < 0) {
        return false;
    }
    table->allocated = wanted;
    return true;
}

/* What a large batch would have needed is given back. */
static void shrink(struct push_table *table) {
    size_t wanted = (table->tail + TABLE_GROW_BYTES) & ~(size_t)(PUSH_PAGE_SIZE - 1);
    if (table->allocated >= wanted + TABLE_GROW_BYTES) {
        give_back(table, wanted);
    }
}

bool push_table_release(struct push_table *table, size_t n_bytes) {
    size_t n_left = table->allocated > n_bytes ? table->allocated - n_bytes : 0;
    return give_back(table, n_left) && n_left > 0;
}

void push_table_take_back(struct push_table *table) {
    size_t end = table->tail;
    table->tail = table->committed;
    shrink(table); /* what comes back later is empty */
    end = end < table->allocated ? end : table->allocated;
    memset(table->base + table->tail, 0, end - table->tail);
}

void push_table_kill(struct push_table *table, struct push_entry *entry) {
    if (table != NULL && entry->commit != 0) {
        __atomic_store_n(&entry->dead, 1, __ATOMIC_RELEASE);
        table->dead += entry->size;
    }
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
    *ret_len = table->committed - TABLE_PAGES_AT;
    return table->base + TABLE_PAGES_AT;
}

size_t push_table_used(const struct push_table *table) {
    return table->committed - TABLE_PAGES_AT;
}

size_t push_table_dead(const struct push_table *table) {
    return table->dead;
}

size_t push_table_room(const struct push_table *table) {
    return table->max_bytes - table->tail;
}

bool push_table_is_file(const struct push_table *table) {
    return table->fd >= 0;
}

const char *push_table_path(const struct push_table *table) {
    return table->path;
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

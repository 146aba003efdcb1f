#include "collectors/jetson/files.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/source/procfs.h"

enum { BUDDY_MAX_ORDERS = 32 };

/* ---- memory ---- */

static const char *const meminfo_keys[MEMINFO_N_FIELDS] = {
    [MEMINFO_BUFFERS] = "Buffers",        [MEMINFO_CACHED] = "Cached",
    [MEMINFO_FREE] = "MemFree",           [MEMINFO_NVMAP_USED] = "NvMapMemUsed",
    [MEMINFO_SWAP_CACHED] = "SwapCached", [MEMINFO_SWAP_FREE] = "SwapFree",
    [MEMINFO_SWAP_TOTAL] = "SwapTotal",   [MEMINFO_TOTAL] = "MemTotal",
};

static int take_line(void *context, size_t number, const char *text) {
    (void)number;
    double *bytes = context;
    struct meminfo_line line;
    if (meminfo_parse(text, &line) < 0) {
        return 0;
    }
    for (size_t i = 0; i < MEMINFO_N_FIELDS; i++) {
        if (scan_word_equal(line.key, meminfo_keys[i])) {
            bytes[i] = (double)line.value * 1024;
        }
    }
    return 0;
}

void jetson_meminfo_parse(const char *text, double ret_bytes[static MEMINFO_N_FIELDS]) {
    for (size_t i = 0; i < MEMINFO_N_FIELDS; i++) {
        ret_bytes[i] = NAN;
    }
    scan_lines(text, "", take_line, ret_bytes, NULL);
}

double jetson_meminfo_used(const double bytes[static MEMINFO_N_FIELDS]) {
    return bytes[MEMINFO_TOTAL] - bytes[MEMINFO_FREE] - bytes[MEMINFO_BUFFERS] -
           bytes[MEMINFO_CACHED];
}

static int buddy_line(void *context, size_t number, const char *line) {
    (void)number;
    uint64_t *counts = context;
    uint64_t row[BUDDY_MAX_ORDERS];
    struct scan_word word;
    for (int i = 0; i < 4; i++) { /* "Node 0, zone Normal" */
        if (!scan_word(&line, &word)) {
            return -EINVAL;
        }
    }
    int n = scan_numbers(&line, row, BUDDY_MAX_ORDERS);
    for (int i = 0; i < n; i++) {
        counts[i] += row[i];
    }
    return n > 0 ? 0 : -EINVAL;
}

int jetson_buddyinfo_parse(const char *text, struct jetson_free_blocks *ret_blocks) {
    uint64_t counts[BUDDY_MAX_ORDERS] = {0};
    int r = scan_lines(text, "buddyinfo", buddy_line, counts, NULL);
    for (unsigned order = BUDDY_MAX_ORDERS; r == 0 && order-- > 0;) {
        if (counts[order] > 0) {
            *ret_blocks = (struct jetson_free_blocks){.order = order, .n_blocks = counts[order]};
            return 0;
        }
    }
    return r < 0 ? r : -ENODATA;
}

int jetson_iram_parse(const char *text, double *ret_bytes) {
    struct scan_word word;
    if (!scan_word(&text, &word) || word.len > strlen("0x0123456789abcdef") ||
        strncmp(word.text, "0x", 2) != 0) {
        return -EINVAL;
    }
    char *end;
    unsigned long long value = strtoull(word.text, &end, 16);
    if (end != word.text + word.len) {
        return -EINVAL;
    }
    *ret_bytes = (double)value;
    return 0;
}

/* ---- the power mode ---- */

/* "ID=2": the number after a key, in a word of its own. */
static bool word_number(struct scan_word word, const char *key, unsigned *ret_number) {
    size_t len = strlen(key);
    const char *digits = word.text + len;
    uint64_t number;
    if (word.len <= len || word.len > len + 9 || memcmp(word.text, key, len) != 0 ||
        !scan_u64(&digits, &number)) {
        return false;
    }
    *ret_number = (unsigned)number;
    return true;
}

int jetson_mode_parse(const char *text, unsigned *ret_id) {
    struct scan_word word;
    bool found = scan_word(&text, &word) && word_number(word, "pmode:", ret_id);
    return found ? 0 : -EINVAL;
}

static bool line_names(const char *line, unsigned id, struct scan_word *ret_name) {
    static const char key[] = "NAME=";
    struct scan_word word;
    unsigned number;
    if (!scan_word(&line, &word) || !scan_word_equal(word, "<") || !scan_word(&line, &word) ||
        !scan_word_equal(word, "POWER_MODEL") || !scan_word(&line, &word) ||
        !word_number(word, "ID=", &number) || number != id || !scan_word(&line, &word) ||
        word.len <= strlen(key) || memcmp(word.text, key, strlen(key)) != 0) {
        return false;
    }
    *ret_name = (struct scan_word){.text = word.text + strlen(key), .len = word.len - strlen(key)};
    return true;
}

int jetson_mode_name(const char *text, unsigned id, struct buf *out) {
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        struct scan_word name;
        if (line_names(line, id, &name)) {
            buf_add(out, name.text, name.len);
            return 0;
        }
    }
    return -ENOENT;
}

/* ---- clients of nvmap ---- */

static bool digits(struct scan_word word, uint64_t *ret_value) {
    uint64_t value = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.text[i] < '0' || word.text[i] > '9' || value > UINT64_MAX / 10 - 1) {
            return false;
        }
        value = value * 10 + (uint64_t)(word.text[i] - '0');
    }
    *ret_value = value;
    return word.len > 0;
}

/* "1234K", or plain bytes from old kernels. */
static bool size(struct scan_word word, double *ret_bytes) {
    bool kilobytes = word.len > 0 && word.text[word.len - 1] == 'K';
    word.len -= kilobytes;
    uint64_t value;
    if (!digits(word, &value)) {
        return false;
    }
    *ret_bytes = kilobytes ? (double)value * 1024 : (double)value;
    return true;
}

int jetson_nvmap_parse(const char *line, struct jetson_nvmap_line *ret_line) {
    struct scan_word client, word;
    struct scan_word first = {0}, last = {0}; /* of the process' name */
    struct scan_word pid = {0}, bytes = {0};
    if (!scan_word(&line, &client)) {
        return -EINVAL;
    }
    while (scan_word(&line, &word)) {
        first = first.text == NULL ? word : first;
        last = pid;
        pid = bytes;
        bytes = word;
    }
    if (bytes.text == NULL) {
        return -EINVAL;
    }
    if (scan_word_equal(client, "CLIENT")) {
        return -ENODATA;
    }
    *ret_line = (struct jetson_nvmap_line){.total = scan_word_equal(client, "total")};
    if (!size(bytes, &ret_line->bytes)) {
        return -EINVAL;
    }
    if (ret_line->total) {
        return 0;
    }
    if (last.text == NULL || !digits(pid, &ret_line->pid)) {
        return -ENODATA;
    }
    size_t len = (size_t)(last.text + last.len - first.text);
    ret_line->process = (struct scan_word){.text = first.text, .len = len};
    return 0;
}

int jetson_nvmap_total(const char *text, double *ret_bytes) {
    int result = -ENODATA;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        struct jetson_nvmap_line row;
        if (jetson_nvmap_parse(line, &row) == 0 && row.total) {
            *ret_bytes = row.bytes;
            result = 0;
        }
    }
    return result;
}

/* ---- thermal zones ---- */

void jetson_zone_name(struct buf *out, const char *type) {
    size_t len = strcspn(type, "-_ ");
    for (size_t i = 0; i < len; i++) {
        char c = type[i];
        buf_add_char(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
}

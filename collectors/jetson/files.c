#include "collectors/jetson/files.h"

#include <errno.h>
#include <math.h>
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
    if (!scan_word(&text, &word) || word.len < 3 || word.len > 18 || word.text[0] != '0' ||
        word.text[1] != 'x') {
        return -EINVAL;
    }
    uint64_t value = 0;
    for (size_t i = 2; i < word.len; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, word.text[i] | 0x20, strlen(digits));
        if (digit == NULL) {
            return -EINVAL;
        }
        value = value * 16 + (uint64_t)(digit - digits);
    }
    *ret_bytes = (double)value;
    return 0;
}

/* ---- the power mode ---- */

/* "ID=2": the number behind a key, in a word of its own. */
static bool word_number(struct scan_word word, const char *key, unsigned *ret_number) {
    size_t len = strlen(key);
    if (word.len <= len || word.len > len + 9 || memcmp(word.text, key, len) != 0) {
        return false;
    }
    unsigned number = 0;
    for (size_t i = len; i < word.len; i++) {
        if (word.text[i] < '0' || word.text[i] > '9') {
            return false;
        }
        number = 10 * number + (unsigned)(word.text[i] - '0');
    }
    *ret_number = number;
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

/* The last word before `*end`, which moves in front of it. */
static bool word_before(const char *begin, const char **end, struct scan_word *ret_word) {
    const char *stop = *end;
    while (stop > begin && (stop[-1] == ' ' || stop[-1] == '\t')) {
        stop--;
    }
    const char *start = stop;
    while (start > begin && start[-1] != ' ' && start[-1] != '\t') {
        start--;
    }
    *ret_word = (struct scan_word){.text = start, .len = (size_t)(stop - start)};
    *end = start;
    return stop > start;
}

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
    const char *end = line + strcspn(line, "\n");
    const char *cursor = line;
    struct scan_word client, word;
    if (!scan_word(&cursor, &client) || !word_before(cursor, &end, &word)) {
        return -EINVAL;
    }
    if (scan_word_equal(client, "CLIENT")) {
        return -ENODATA;
    }
    *ret_line = (struct jetson_nvmap_line){0};
    if (!size(word, &ret_line->bytes)) {
        return -EINVAL;
    }
    if (scan_word_equal(client, "total")) {
        ret_line->total = true;
        return 0;
    }
    if (!word_before(cursor, &end, &word) || !digits(word, &ret_line->pid)) {
        return -ENODATA;
    }
    while (end > cursor && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    while (cursor < end && (*cursor == ' ' || *cursor == '\t')) {
        cursor++;
    }
    ret_line->process = (struct scan_word){.text = cursor, .len = (size_t)(end - cursor)};
    return ret_line->process.len > 0 ? 0 : -ENODATA;
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

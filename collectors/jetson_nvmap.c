#include "collectors/jetson_nvmap.h"

#include <errno.h>
#include <string.h>

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

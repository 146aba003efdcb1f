#include "collectors/source/pressure.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/scan.h"

int pressure_parse(const char *line, struct pressure_line *ret_line) {
    static const char key[] = "total=";
    struct scan_word word;
    if (!scan_word(&line, &word)) {
        return -EINVAL;
    }
    ret_line->full = scan_word_equal(word, "full");
    if (!ret_line->full && !scan_word_equal(word, "some")) {
        return -EINVAL;
    }
    while (scan_word(&line, &word)) {
        const char *number = word.text + strlen(key);
        if (word.len > strlen(key) && memcmp(word.text, key, strlen(key)) == 0) {
            return scan_u64(&number, &ret_line->total_usec) ? 0 : -EINVAL;
        }
    }
    return -EINVAL;
}

#include "collectors/source/net_dev.h"

#include <errno.h>
#include <string.h>

int net_dev_parse(const char *line, struct net_dev_line *ret_line) {
    struct scan_word name;
    const char *cursor = line;
    if (!scan_word(&cursor, &name)) {
        return -EINVAL;
    }
    /* The kernel refuses colons in names, so the first one ends it. */
    const char *colon = memchr(name.text, ':', name.len);
    if (colon == NULL || colon == name.text) {
        return -EINVAL;
    }
    ret_line->device = (struct scan_word){.text = name.text, .len = (size_t)(colon - name.text)};
    cursor = colon + 1;
    int n = scan_numbers(&cursor, ret_line->fields, NET_DEV_FIELDS);
    return n == NET_DEV_FIELDS ? 0 : -EINVAL;
}

#include "collectors/host/mount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_option(struct scan_word options, const char *option) {
    size_t n = strlen(option);
    const char *at = options.text;
    const char *end = options.text + options.len;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t len = (size_t)((comma != NULL ? comma : end) - at);
        if (len == n && memcmp(at, option, n) == 0) {
            return true;
        }
        at += len + 1;
    }
    return false;
}

int host_mount_parse(const char *line, struct host_mount_line *ret_line) {
    struct scan_word options;
    if (!scan_word(&line, &ret_line->device) || !scan_word(&line, &ret_line->mount_point) ||
        !scan_word(&line, &ret_line->type) || !scan_word(&line, &options)) {
        return -EINVAL;
    }
    const char *begin = ret_line->device.text;
    const char *end = ret_line->type.text + ret_line->type.len;
    ret_line->key = (struct scan_word){.text = begin, .len = (size_t)(end - begin)};
    ret_line->read_only = has_option(options, "ro");
    return 0;
}

static bool is_octal(char c) {
    return c >= '0' && c <= '7';
}

char *host_mount_unescape(struct scan_word word) {
    char *path = malloc(word.len + 1);
    if (path == NULL) {
        return NULL;
    }
    const char *in = word.text;
    const char *end = in + word.len;
    char *out = path;
    while (in < end) {
        if (*in == '\\' && end - in >= 4 && in[1] <= '3' && is_octal(in[1]) && is_octal(in[2]) &&
            is_octal(in[3])) {
            *out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return path;
}

const char *host_mount_strip(const char *path, const char *rootfs) {
    size_t n = strlen(rootfs);
    while (n > 0 && rootfs[n - 1] == '/') {
        n--;
    }
    if (n == 0 || strncmp(path, rootfs, n) != 0) {
        return path;
    }
    if (path[n] == '\0') {
        return "/";
    }
    return path[n] == '/' ? path + n : path;
}

#include "tests/fakes/plant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"

/* The directories of the present section: pattern before and behind a number. */
struct section {
    char before[256];
    char behind[256];
    int first, last; /* -1: no number */
};

static void section_parse(struct section *section, char *line) {
    char *range = strchr(line, '{');
    *section = (struct section){.first = -1, .last = -1};
    int end = 0;
    if (range != NULL && sscanf(range, "{%d..%d}%n", &section->first, &section->last, &end) == 2 &&
        end > 0) {
        *range = '\0';
        snprintf(section->behind, sizeof(section->behind), "%s", range + end);
    }
    snprintf(section->before, sizeof(section->before), "%s", line);
}

static void section_dir(const struct section *section, const char *root, int number,
                        struct buf *out) {
    buf_reset(out);
    buf_printf(out, "%s/%s", root, section->before);
    if (number >= 0) {
        buf_printf(out, "%d%s", number, section->behind);
    }
}

static int make_dirs(char *path, struct error *err) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL) {
            *slash = '\0';
        }
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            return error_set(err, -errno, "mkdir %s: %m", path);
        }
        if (slash == NULL) {
            return 0;
        }
        *slash = '/';
    }
}

static void unescape(const char *text, struct buf *out) {
    for (; *text != '\0'; text++) {
        bool escape = text[0] == '\\' && (text[1] == 'n' || text[1] == '0');
        buf_add_char(out, !escape ? *text : text[1] == 'n' ? '\n' : '\0');
        text += escape;
    }
    if (out->len == 0 || out->data[out->len - 1] != '\0') {
        buf_add_char(out, '\n');
    }
}

static int write_file(const char *path, const char *content, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    unescape(content, &text);
    int fd CLEANUP_CLOSE = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len) {
        return error_set(err, -errno, "write %s: %m", path);
    }
    return 0;
}

static int make_entry(char *dir, char *line, struct error *err) {
    char *link = strstr(line, " -> ");
    char *file = strstr(line, " = ");
    char *split = file != NULL ? file : link;
    if (split == NULL) {
        return error_set(err, -EINVAL, "not understood: \"%s\"", line);
    }
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%.*s", dir, (int)(split - line), line);
    if (file != NULL) {
        return write_file(buf_str(&path), file + strlen(" = "), err);
    }
    bool made = symlink(link + strlen(" -> "), buf_str(&path)) == 0;
    return made ? 0 : error_set(err, -errno, "link %s: %m", buf_str(&path));
}

/* Once per directory of the section. */
static int take_line(struct section *section, const char *root, char *line, struct error *err) {
    struct buf dir CLEANUP_BUF = {0};
    size_t len = strlen(line);
    bool head = line[0] == '[' && line[len - 1] == ']';
    if (len == 0 || line[0] == '#') {
        return 0;
    }
    if (head) {
        line[len - 1] = '\0';
        section_parse(section, line + 1);
    }
    int r = 0;
    for (int number = section->first; number <= section->last && r == 0; number++) {
        section_dir(section, root, number, &dir);
        r = head ? make_dirs(dir.data, err) : make_entry(dir.data, line, err);
    }
    return r;
}

int plant(const char *manifest, const char *root, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read(manifest, &text, err);
    struct section section = {.first = -1, .last = -1};
    char *rest = text.data;
    while (r == 0 && rest != NULL) {
        r = take_line(&section, root, strsep(&rest, "\n"), err);
    }
    return r;
}

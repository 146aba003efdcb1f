#include "exporter/channel/pywaggle_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/clock.h"
#include "exporter/core/json.h"
#include "exporter/core/memory.h"
#include "exporter/metrics/metric.h"

/* ---- one line ---- */

static const char duration_prefix[] = "plugin.duration.";

/* Where inference on an edge node takes its time. */
static const double duration_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                         0.25,  0.5,    1,     2.5,  5,     10};

struct record {
    char *name;
    bool has_value; /* as a number */
    double value;
    struct label *labels;
    size_t n_labels;
};

/* Labels that identify the plugin and its place: a plugin cannot set them. */
static bool is_taken(const char *name) {
    static const char *const taken[] = {"container", "job", "le",    "namespace",
                                        "node",      "pod", "plugin"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    return strncmp(name, "__", 2) == 0;
}

/* Adds a label where it belongs by name. An invalid label is left out, not the sample. */
static void add_label(struct record *record, const char *name, const char *value) {
    if (value[0] == '\0' || record->n_labels == PYWAGGLE_MAX_LABELS || is_taken(name) ||
        !metric_label_name_valid(name, strlen(name))) {
        return;
    }
    size_t i = record->n_labels;
    for (; i > 0 && strcmp(record->labels[i - 1].name, name) > 0; i--) {
    }
    if (i > 0 && strcmp(record->labels[i - 1].name, name) == 0) {
        record->labels[i - 1].value = value;
        return;
    }
    memmove(record->labels + i + 1, record->labels + i,
            (record->n_labels - i) * sizeof(record->labels[0]));
    record->labels[i] = (struct label){.name = name, .value = value};
    record->n_labels++;
}

static char legal(char c) {
    return c == '.' || c == '-' ? '_' : c;
}

static int read_meta(struct json *json, struct record *record, struct error *err) {
    if (!json_take(json, '{')) {
        return json_fail(json, err, "meta: expected an object");
    }
    bool first = true;
    char *key, *value;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        if (json_peek(json) != '"') {
            r = json_skip(json, err);
        } else if ((r = json_read_string(json, &value, &len, err)) == 0) {
            for (char *c = key; *c != '\0'; c++) {
                *c = legal(*c);
            }
            add_label(record, key, value);
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* Numbers that Python writes and JSON does not have. */
static bool take_word(struct json *json, double *ret_value) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"-Infinity", -INFINITY}, {"Infinity", INFINITY}, {"NaN", NAN}};
    json_peek(json);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i].word);
        if ((size_t)(json->end - json->at) >= len && memcmp(json->at, words[i].word, len) == 0) {
            json->at += len;
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

static int read_value(struct json *json, struct record *record, struct error *err) {
    char c = json_peek(json);
    record->has_value = take_word(json, &record->value);
    if (record->has_value || (c != '-' && (c < '0' || c > '9'))) {
        return record->has_value ? 0 : json_skip(json, err);
    }
    int r = json_read_number(json, &record->value, err);
    record->has_value = r == 0;
    if (r == 0) {
        return 0;
    }
    const char *at = json->at;
    while (at < json->end && strchr("0123456789+-.eE", *at) != NULL && *at != '\0') {
        at++;
    }
    if (at == json->at || at[-1] < '0' || at[-1] > '9') {
        return r;
    }
    json->at += at - json->at; /* too large for us: it only counts */
    return 0;
}

static int read_record(struct json *json, struct record *record, struct error *err) {
    if (!json_take(json, '{')) {
        return json_fail(json, err, "expected an object");
    }
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        if (strcmp(key, "name") == 0) {
            r = json_read_string(json, &record->name, &len, err);
        } else if (strcmp(key, "meta") == 0) {
            r = read_meta(json, record, err);
        } else if (strcmp(key, "value") == 0) {
            r = read_value(json, record, err);
        } else {
            r = json_skip(json, err);
        }
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && !json_at_end(json)) {
        return json_fail(json, err, "expected the end of the line");
    }
    return r;
}

/* "env.count.car" as a metric is env_count_car, "3d.count" is _3d_count. */
static int make_name(const char *name, char out[static PYWAGGLE_MAX_NAME_LEN + 2],
                     struct error *err) {
    size_t len = strlen(name);
    if (len > PYWAGGLE_MAX_NAME_LEN) {
        return error_set(err, -EINVAL, "name is longer than %d bytes", PYWAGGLE_MAX_NAME_LEN);
    }
    size_t begin = name[0] >= '0' && name[0] <= '9' ? 1 : 0;
    out[0] = '_';
    for (size_t i = 0; i <= len; i++) {
        out[begin + i] = legal(name[i]);
    }
    return metric_name_valid(out, begin + len)
               ? 0
               : error_set(err, -EINVAL, "name \"%s\" makes no metric name", name);
}

static struct push_update *add(struct pywaggle_line *line) {
    struct push_update *update = &line->updates[line->n_updates++];
    *update = (struct push_update){.ttl_ms = PUSH_TTL_DEFAULT, .n_values = 1};
    return update;
}

static void add_publish(struct pywaggle_line *line, const char *name) {
    struct push_update *update = add(line);
    line->one = 1;
    line->publish_label = (struct label){.name = "name", .value = name};
    update->name = "plugin_publishes_total";
    update->help = "Messages that the plugin has published.";
    update->type = PUSH_COUNTER;
    update->op = PUSH_INC;
    update->values = &line->one;
    update->labels = &line->publish_label;
    update->n_labels = 1;
}

static void add_duration(struct pywaggle_line *line, struct record *record) {
    struct push_update *update = add(line);
    add_label(record, "name", record->name + strlen(duration_prefix));
    line->value = record->value / 1e9;
    update->name = "plugin_duration_seconds";
    update->help = "Time that the steps of the plugin take, as its timeit measures it.";
    update->type = PUSH_HISTOGRAM;
    update->op = PUSH_OBSERVE;
    update->bounds = duration_bounds;
    update->n_bounds = ARRAY_LEN(duration_bounds);
    update->values = &line->value;
    update->labels = line->labels;
    update->n_labels = record->n_labels;
}

static void add_gauge(struct pywaggle_line *line, const struct record *record) {
    struct push_update *update = add(line);
    line->value = record->value;
    update->name = line->name;
    update->help = "Latest value that the plugin has published under this name.";
    update->type = PUSH_GAUGE;
    update->op = PUSH_SET;
    update->values = &line->value;
    update->labels = line->labels;
    update->n_labels = record->n_labels;
}

int pywaggle_line_read(char *text, size_t len, struct pywaggle_line *out, struct error *err) {
    struct json json = json_begin(text, len, 1);
    struct record record = {.labels = out->labels};
    out->n_updates = 0;
    int r = read_record(&json, &record, err);
    if (r < 0) {
        return r;
    }
    if (record.name == NULL) {
        return error_set(err, -EINVAL, "no name");
    }
    r = make_name(record.name, out->name, err);
    if (r < 0) {
        return r;
    }
    add_publish(out, record.name);
    size_t prefix_len = strlen(duration_prefix);
    bool duration =
        strncmp(record.name, duration_prefix, prefix_len) == 0 && record.name[prefix_len] != '\0';
    if (record.has_value && duration) {
        add_duration(out, &record);
    } else if (record.has_value) {
        add_gauge(out, &record);
    }
    return 0;
}

/* ---- times ---- */

/* Counted back from now: a board without a battery starts in 1970 and gets the time later. Files
 * are stamped by the tick, which is up to 10 ms behind: what was there before us never seems
 * younger. */
struct pywaggle_span pywaggle_span_until_now(int64_t begin_ns) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_ns = wall.tv_sec * CLOCK_NS_PER_SEC + wall.tv_nsec;
    return (struct pywaggle_span){.begin_ns = now_ns - (clock_monotonic_ns() - begin_ns),
                                  .end_ns = now_ns};
}

static int64_t read_birth(int fd) {
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || (st.stx_mask & STATX_BTIME) == 0) {
        return 0;
    }
    return st.stx_btime.tv_sec * CLOCK_NS_PER_SEC + st.stx_btime.tv_nsec;
}

/* ---- the list ---- */

/* How long a log's place is kept for it at least. */
#define KEEP_NS (300 * CLOCK_NS_PER_SEC)

static void file_finish(struct pywaggle_file *file) {
    free(file->directory);
    free(file->plugin);
}

void pywaggle_files_finish(struct pywaggle_files *files) {
    for (size_t i = 0; i < files->n; i++) {
        file_finish(&files->items[i]);
    }
    free(files->items);
    *files = (struct pywaggle_files){0};
}

struct pywaggle_file *pywaggle_files_find(const struct pywaggle_files *files, const char *directory,
                                          const char *plugin, bool below) {
    for (size_t i = 0; i < files->n; i++) {
        struct pywaggle_file *file = &files->items[i];
        if (file->below == below && strcmp(file->plugin, plugin) == 0 &&
            strcmp(file->directory, directory) == 0) {
            return file;
        }
    }
    return NULL;
}

void pywaggle_files_remove(struct pywaggle_files *files, struct pywaggle_file *file) {
    file_finish(file);
    *file = files->items[--files->n];
}

static void make_room(struct pywaggle_files *files) {
    int64_t now = clock_monotonic_ns();
    for (size_t i = 0; i < files->n; i++) {
        struct pywaggle_file *file = &files->items[i];
        if (file->gone_ns != 0 && now - file->gone_ns > KEEP_NS) {
            pywaggle_files_remove(files, file);
            return;
        }
    }
}

struct pywaggle_file *pywaggle_files_add(struct pywaggle_files *files, const char *directory,
                                         const char *plugin, bool below) {
    if (files->n == PYWAGGLE_MAX_FILES) {
        make_room(files);
    }
    if (files->n == PYWAGGLE_MAX_FILES) {
        return NULL;
    }
    ARRAY_GROW(&files->items, &files->capacity, files->n + 1);
    struct pywaggle_file *file = &files->items[files->n++];
    *file = (struct pywaggle_file){
        .directory = mem_strdup(directory), .plugin = mem_strdup(plugin), .below = below};
    return file;
}

/* ---- one log ---- */

/* Plugins write there, so no links are followed: they could lead to any file that we may read. */
int pywaggle_file_open(int dirfd, const char *below, struct pywaggle_sight *ret_sight) {
    int dir CLEANUP_CLOSE = -1;
    if (below != NULL) {
        dir = openat(dirfd, below, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        if (dir < 0) {
            return -errno;
        }
        dirfd = dir;
    }
    int fd CLEANUP_CLOSE =
        openat(dirfd, "data.ndjson", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return -ENOENT;
    }
    *ret_sight = (struct pywaggle_sight){
        .device = st.st_dev, .inode = st.st_ino, .birth_ns = read_birth(fd), .size = st.st_size};
    return TAKE_FD(fd);
}

/* ELOOP: it is a symbolic link. */
bool pywaggle_is_absence(int code) {
    return code == -ENOENT || code == -ENOTDIR || code == -ELOOP;
}

/* Inodes are used again, and a device may have another number when it is mounted again. */
static bool is_same(const struct pywaggle_file *file, const struct pywaggle_sight *sight) {
    if (file->inode != sight->inode) {
        return false;
    }
    bool born = file->birth_ns != 0 && sight->birth_ns != 0;
    return born ? file->birth_ns == sight->birth_ns : file->device == sight->device;
}

/* A birth in the future is from a machine with another clock: it is worth nothing. */
static bool is_within(int64_t birth_ns, const struct pywaggle_span *span) {
    return birth_ns > span->begin_ns && birth_ns <= span->end_ns;
}

void pywaggle_file_meet(struct pywaggle_file *file, const struct pywaggle_sight *sight,
                        const struct pywaggle_span *followed) {
    if (!is_same(file, sight)) { /* new, or recreated */
        bool old = file->early && !is_within(sight->birth_ns, followed);
        file->offset = old ? sight->size : 0;
    } else if (sight->size < file->offset) { /* cut */
        file->offset = 0;
    }
    file->device = sight->device;
    file->inode = sight->inode;
    file->birth_ns = sight->birth_ns;
    file->gone_ns = 0;
    file->early = false;
}

void pywaggle_file_miss(struct pywaggle_file *file, int code) {
    bool absent = pywaggle_is_absence(code);
    if (absent) {
        file->early = false;
    }
    if (file->gone_ns == 0 && (absent || file->inode == 0)) {
        file->gone_ns = clock_monotonic_ns();
    }
}

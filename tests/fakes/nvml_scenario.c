#include "tests/fakes/nvml_scenario.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/nvml/types.h"

enum { MAX_LINES = 2048 };

static struct line {
    int gpu;
    const char *key;
    const char *value;
} lines[MAX_LINES];
static size_t n_lines;
static char text[1 << 16]; /* not allocated: nobody would free it when the library is unloaded */
static bool is_loaded;
static struct timespec loaded;
static ino_t loaded_inode;
static bool watch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of these */

static int compare_lines(const void *a, const void *b) {
    const struct line *first = a, *second = b;
    if (first->gpu != second->gpu) {
        return first->gpu < second->gpu ? -1 : 1;
    }
    return strcmp(first->key, second->key);
}

static const struct line *find(int gpu, const char *key) {
    struct line wanted = {.gpu = gpu, .key = key};
    return bsearch(&wanted, lines, n_lines, sizeof(lines[0]), compare_lines);
}

static void parse_line(char *line) {
    char *value = strpbrk(line, " \t");
    if (value != NULL) {
        *value++ = '\0';
        value += strspn(value, " \t");
    }
    int gpu = SCENARIO_DRIVER;
    char *point = strchr(line, '.');
    if (point != NULL && (line[0] == '*' || (line[0] >= '0' && line[0] <= '9'))) {
        gpu = line[0] == '*' ? SCENARIO_ALL : atoi(line);
        line = point + 1;
    }
    if (n_lines < MAX_LINES) {
        lines[n_lines++] = (struct line){gpu, line, value != NULL ? value : ""};
    }
}

static bool read_all(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return len > 0;
}

static bool load(void) {
    const char *path = getenv("FAKE_NVML");
    struct stat status;
    if (path == NULL || stat(path, &status) < 0) {
        return false;
    }
    if (is_loaded && status.st_ino == loaded_inode && status.st_mtim.tv_sec == loaded.tv_sec &&
        status.st_mtim.tv_nsec == loaded.tv_nsec) {
        return true;
    }
    is_loaded = read_all(path);
    if (!is_loaded) {
        return false;
    }
    loaded = status.st_mtim;
    loaded_inode = status.st_ino;
    n_lines = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] != '#') {
            parse_line(line);
        }
    }
    qsort(lines, n_lines, sizeof(lines[0]), compare_lines);
    watch = find(SCENARIO_DRIVER, "watch") != NULL;
    return true;
}

bool scenario_load(void) {
    pthread_mutex_lock(&lock);
    bool good = load();
    pthread_mutex_unlock(&lock);
    return good;
}

/* A copy, as another thread may load the next file. NULL: there is no such line. */
static const char *copy_value(int gpu, const char *key) {
    static _Thread_local char value[1 << 14];
    pthread_mutex_lock(&lock);
    if (watch) {
        load();
    }
    const struct line *line = find(gpu, key);
    if (line == NULL && gpu >= 0) {
        line = find(SCENARIO_ALL, key);
    }
    if (line != NULL) {
        snprintf(value, sizeof(value), "%s", line->value);
    }
    pthread_mutex_unlock(&lock);
    return line != NULL ? value : NULL;
}

const char *scenario_text(int gpu, const char *key, unsigned *ret_code) {
    const char *value = copy_value(gpu, key);
    *ret_code = NVML_CODE_NOT_SUPPORTED;
    if (value == NULL) {
        return NULL;
    }
    unsigned number;
    if (sscanf(value, "error %u", &number) == 1) {
        *ret_code = number;
        return NULL;
    }
    if (sscanf(value, "block %u", &number) == 1) {
        sleep(number);
        return NULL;
    }
    *ret_code = NVML_CODE_SUCCESS;
    return value;
}

unsigned scenario_number(int gpu, const char *key, unsigned index, unsigned long long *ret_number) {
    unsigned code;
    const char *value = scenario_text(gpu, key, &code);
    if (value == NULL) {
        return code;
    }
    for (unsigned i = 0; i < index && *value != '\0'; i++) {
        value += strcspn(value, " ");
        value += strspn(value, " ");
    }
    if (*value == '\0' || *value == '-') {
        return NVML_CODE_NOT_SUPPORTED;
    }
    *ret_number = strtoull(value, NULL, 0);
    return NVML_CODE_SUCCESS;
}

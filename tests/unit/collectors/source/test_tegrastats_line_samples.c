/* Lines of real boards, where they lie beside the project: a second reading of every token, made of
 * sscanf, must say the same. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unity.h>

#include "collectors/source/tegrastats_line.h"
#include "exporter/core/buf.h"
#include "exporter/core/file.h"

static char samples_path[4096];
static struct buf samples;

/* How much of a record the second reading has met. */
struct seen {
    size_t zones;
    size_t rails;
    size_t engines;
};

static const char *message; /* the line at hand */

static void check_zone(const struct tegrastats_line *line, const char *name, double celsius,
                       struct seen *seen) {
    if (celsius <= -256 || strcasecmp(name, "PMIC") == 0) {
        return;
    }
    TEST_ASSERT_LESS_THAN_MESSAGE(line->n_zones, seen->zones, message);
    const struct tegrastats_zone *zone = &line->zones[seen->zones++];
    TEST_ASSERT_TRUE_MESSAGE(strcasecmp(name, zone->name) == 0, message);
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(celsius, zone->celsius, message);
}

static void check_rail(const struct tegrastats_line *line, const char *name, double now,
                       double average, struct seen *seen) {
    if (strcmp(name, "NC") == 0) {
        return;
    }
    TEST_ASSERT_LESS_THAN_MESSAGE(line->n_rails, seen->rails, message);
    const struct tegrastats_rail *rail = &line->rails[seen->rails++];
    TEST_ASSERT_TRUE_MESSAGE(strcasecmp(name, rail->name) == 0, message);
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(now / 1000, rail->watts, message);
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(average / 1000, rail->average_watts, message);
}

static void check_number(double expected, double actual) {
    if (isnan(expected)) {
        TEST_ASSERT_TRUE_MESSAGE(isnan(actual), message);
    } else {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(expected, actual, message);
    }
}

static void check_cpus(const struct tegrastats_line *line, char *list) {
    double common = NAN;
    char *end = strchr(list, ']');
    TEST_ASSERT_NOT_NULL_MESSAGE(end, message);
    sscanf(end, "]@%lf", &common);
    *end = '\0';
    size_t i = 0;
    for (char *core; (core = strsep(&list, ",")) != NULL; i++) {
        double load = NAN, clock = common;
        sscanf(core, "%lf%%@%lf", &load, &clock);
        TEST_ASSERT_LESS_THAN_MESSAGE(line->n_cpus, i, message);
        check_number(load / 100, line->cpus[i].load_ratio);
        check_number(isnan(load) ? NAN : clock * 1e6, line->cpus[i].frequency_hertz);
        check_number(strcmp(core, "off") == 0 ? 0 : isnan(load) ? NAN : 1, line->cpus[i].online);
    }
    TEST_ASSERT_EQUAL_size_t_MESSAGE(line->n_cpus, i, message);
}

static void check_reading(const struct tegrastats_line *line, const char *name, const char *value,
                          struct seen *seen) {
    double load = NAN, clock = NAN;
    if (sscanf(value, "%lf%%@%lf", &load, &clock) < 1 || strchr(value, '%') == NULL) {
        clock = load;
        load = NAN;
        sscanf(value, "@%lf", &clock);
    }
    double second = NAN; /* samples with several clusters have them at the same clock, or nearly */
    if (sscanf(value, "%*[0-9%]@[%lf,%lf", &clock, &second) == 0) {
        sscanf(value, "@[%lf,%lf", &clock, &second);
    }
    if (strncmp(name, "EMC", 3) == 0) {
        check_number(clock * 1e6, line->emc_frequency_hertz);
        check_number(isnan(clock) ? NAN : load / 100, line->emc_load_ratio);
    } else if (strcmp(name, "GR3D") == 0 || strcmp(name, "GR3D_FREQ") == 0) {
        check_number(load / 100, line->gpu_load_ratio);
        check_number(clock * 1e6, line->gpu_frequency_hertz);
        if (!isnan(clock)) {
            size_t last = isnan(second) ? 0 : 1;
            TEST_ASSERT_GREATER_THAN_MESSAGE(last, line->n_gpcs, message);
            check_number((last == 0 ? clock : second) * 1e6, line->gpc_frequency_hertz[last]);
        }
    } else if (strncmp(name, "GR3D2", 5) != 0) {
        TEST_ASSERT_LESS_THAN_MESSAGE(line->n_engines, seen->engines, message);
        const struct tegrastats_engine *engine = &line->engines[seen->engines++];
        if (strcmp(name, "MSENC") != 0) {
            size_t len = strcspn(name, "_");
            TEST_ASSERT_TRUE_MESSAGE(strncasecmp(name, engine->name, len) == 0, message);
        }
        check_number(load / 100, engine->load_ratio);
        check_number(clock * 1e6, engine->frequency_hertz);
        check_number(strcmp(value, "off") != 0 && clock != 0, engine->active);
    }
}

static void check_memory(const struct tegrastats_memory *memory, double used, double total,
                         double unit) {
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(used * unit, memory->used_bytes, message);
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(total * unit, memory->total_bytes, message);
}

static double unit_of(char letter) {
    return letter == 'k' ? 1024 : 1048576;
}

static void check_detail(const struct tegrastats_line *line, const char *text) {
    double count, size;
    char letter;
    if (sscanf(text, "SWAP %*f/%*fMB (cached %lfMB)", &size) == 1) {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(size * 1048576, line->swap.cached_bytes, message);
    } else if (sscanf(text, "RAM %*f/%*fMB (lfb %lfx%lf%c", &count, &size, &letter) == 3) {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(count, line->ram.free_blocks, message);
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(size * unit_of(letter), line->ram.free_block_bytes,
                                         message);
    } else if (sscanf(text, "IRAM %*f/%*fkB(lfb %lf%c", &size, &letter) == 2) {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(size * unit_of(letter), line->iram.free_block_bytes,
                                         message);
    }
}

/* One field; returns how many words it took. */
static size_t check_field(const struct tegrastats_line *line, char **words, struct seen *seen) {
    char name[64], value[64] = "";
    double a, b;
    snprintf(name, sizeof(name), "%s", words[0]);
    snprintf(value, sizeof(value), "%s", words[1] != NULL ? words[1] : "");
    if (sscanf(words[0], "%63[^@]@%lfC", name, &a) == 2) {
        check_zone(line, name, a, seen);
        return 1;
    }
    if (strcmp(name, "RAM") == 0 || strcmp(name, "SWAP") == 0 || strcmp(name, "IRAM") == 0) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(2, sscanf(value, "%lf/%lf", &a, &b), message);
        check_memory(name[0] == 'R'   ? &line->ram
                     : name[0] == 'S' ? &line->swap
                                      : &line->iram,
                     a, b, unit_of(value[strspn(value, "0123456789/")]));
        return words[2] != NULL && strchr(words[2], ')') != NULL            ? 3
               : words[2] != NULL && words[3] != NULL && words[2][0] == '(' ? 4
                                                                            : 2;
    }
    if (value[0] == '[') {
        check_cpus(line, words[1] + 1);
        return 2;
    }
    if (strcmp(name, "MTS") == 0) {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(atof(words[2]) / 100, line->mts_foreground_ratio, message);
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(atof(words[4]) / 100, line->mts_background_ratio, message);
        return 5;
    }
    if (strcmp(name, "EDP") == 0) {
        TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(atof(words[2]) * 1e6, line->edp_limit_hertz, message);
        return 3;
    }
    if (sscanf(value, "%lf/%lf", &a, &b) == 2 || sscanf(value, "%lfmW/%lf", &a, &b) == 2) {
        check_rail(line, name, a, b, seen);
    } else {
        check_reading(line, name, value, seen);
    }
    return 2;
}

static void check_record(const struct tegrastats_line *line, const char *text) {
    char *copy CLEANUP_FREE = strdup(text);
    char *words[512] = {NULL};
    size_t n_words = 0;
    for (char *save, *word = strtok_r(copy, " ", &save); word != NULL && n_words < 500;
         word = strtok_r(NULL, " ", &save)) {
        words[n_words++] = word;
    }
    struct seen seen = {0};
    for (size_t i = strchr(words[0], '-') != NULL ? 2 : 0; i < n_words;) {
        i += check_field(line, &words[i], &seen);
    }
    TEST_ASSERT_EQUAL_size_t_MESSAGE(line->n_zones, seen.zones, message);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(line->n_rails, seen.rails, message);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(line->n_engines, seen.engines, message);
    for (const char *at = text; (at = strstr(at, "RAM ")) != NULL; at++) {
        check_detail(line, at > text && at[-1] == 'I' ? at - 1 : at);
    }
    const char *swap = strstr(text, "SWAP ");
    check_detail(line, swap != NULL ? swap : "");
}

/* `"key": "value"` of one object; the values have no escapes. */
static char *field_of(const char *object, const char *key) {
    char pattern[32];
    snprintf(pattern, sizeof(pattern), "\"%s\": \"", key);
    const char *begin = strstr(object, pattern);
    TEST_ASSERT_NOT_NULL_MESSAGE(begin, object);
    begin += strlen(pattern);
    return strndup(begin, strcspn(begin, "\""));
}

static void check_sample(const char *object, size_t *n_records, size_t *n_noise) {
    char *text CLEANUP_FREE = field_of(object, "line");
    char *kind CLEANUP_FREE = field_of(object, "kind");
    struct tegrastats_line line;
    message = text;
    int r = tegrastats_line_parse(text, strlen(text), &line);
    if (strcmp(kind, "noise") == 0 || text[0] == '[') {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, r, message);
        *n_noise += 1;
        return;
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, message);
    /* A list that the source has shortened has an ellipsis in it. */
    TEST_ASSERT_EQUAL_size_t_MESSAGE(strstr(text, "...") != NULL, line.n_unknown, message);
    check_record(&line, text);
    *n_records += 1;
}

static void test_samples(void) {
    size_t n_records = 0, n_noise = 0;
    if (file_read(samples_path, &samples, NULL) < 0) {
        TEST_IGNORE_MESSAGE("SKIP: no recorded lines beside the project");
    }
    char *rest = samples.data;
    for (char *object; (object = strsep(&rest, "\n")) != NULL;) {
        if (object[0] != '\0') {
            check_sample(object, &n_records, &n_noise);
        }
    }
    TEST_ASSERT_GREATER_OR_EQUAL(90, n_records);
    TEST_ASSERT_GREATER_OR_EQUAL(8, n_noise);
}

void suiteSetUp(void) {
    const char *path = getenv("WAAP_TEGRASTATS_SAMPLES");
    const char *root = getenv("WAAP_SOURCE_ROOT");
    snprintf(samples_path, sizeof(samples_path), "%s%s",
             path != NULL   ? path
             : root != NULL ? root
                            : ".",
             path != NULL ? "" : "/../shared/data/tegrastats-samples.jsonl");
}

int suiteTearDown(int failures) {
    buf_finish(&samples);
    return failures;
}

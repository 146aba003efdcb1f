#include "collectors/textfile/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "collectors/textfile/file.h"
#include "exporter/core/buf.h"
#include "exporter/metrics/exposition.h"
#include "exporter/settings/settings.h"
#include "tests/unit/exporter/metrics/exposition_text.h"
#include "tests/unit/waiting.h"

static char root[4096];
static struct settings *settings;
static void *state;
static struct error err;
static struct buf page;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static size_t count_options(void) {
    size_t n = 0;
    while (textfile_collector.options[n].name != NULL) {
        n++;
    }
    return n;
}

void setUp(void) {
    static const struct option *options[16];
    size_t n = count_options();
    TEST_ASSERT_LESS_THAN(ARRAY_LEN(options), n);
    for (size_t i = 0; i < n; i++) {
        options[i] = &textfile_collector.options[i];
    }
    settings = settings_create(options, n);
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%s/waap-textfile-XXXXXX", tmp != NULL ? tmp : "/tmp");
    TEST_ASSERT_NOT_NULL(mkdtemp(root));
}

void tearDown(void) {
    if (state != NULL) {
        textfile_collector.close(TAKE(state));
    }
    settings_destroy(TAKE(settings));
    buf_finish(&page);
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name) {
    static char path[8192];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *text) {
    FILE *file CLEANUP_FCLOSE = fopen(path_of(name), "we");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
}

static void set(const char *option, const char *text) {
    const struct option *row = settings_option(settings, option);
    TEST_ASSERT_EQUAL(0, settings_set(settings, row, SETTINGS_FLAG, text, &err));
}

static int open_collector(void) {
    struct collector_env env = {.settings = settings};
    return textfile_collector.open(&env, &state, &err);
}

static void open_directory(const char *path) {
    set("collector.textfile.directory", path);
    TEST_ASSERT_EQUAL(0, open_collector());
}

/* Collects and renders into `page`, without the mtimes. */
static int collect(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    err.text[0] = '\0';
    int r = textfile_collector.collect(state, &snapshot, &err);
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    buf_reset(&page);
    exposition_text(&page, (struct exposition_choice){.format = EXPOSITION_TEXT}, &part, 1, NULL);
    exposition_part_unref(part);
    return r;
}

/* `format` gets the root for each %s in it. */
static void check_error(int r, const char *format) {
    char expected[16384];
    snprintf(expected, sizeof(expected), format, root, root);
    TEST_ASSERT_EQUAL_STRING(expected, err.text);
    TEST_ASSERT_EQUAL(-EIO, r);
    TEST_ASSERT_NOT_NULL(strstr(page.data, "\nnode_textfile_scrape_error 1\n"));
}

static void check_good(int r) {
    TEST_ASSERT_EQUAL_STRING("", err.text);
    TEST_ASSERT_EQUAL(0, r);
    TEST_ASSERT_NOT_NULL(strstr(page.data, "\nnode_textfile_scrape_error 0\n"));
}

static void check_has(const char *text) {
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(page.data, text), page.data);
}

static void check_lacks(const char *text) {
    TEST_ASSERT_NULL_MESSAGE(strstr(page.data, text), page.data);
}

static void test_without_a_directory_there_is_no_source(void) {
    TEST_ASSERT_EQUAL(-ENODEV, open_collector());
}

static void test_good_files_are_served_with_their_mtime(void) {
    put("a.prom", "# HELP b_total All.\n# TYPE b_total counter\nb_total{z=\"1\",a=\"2\"} 3\n"
                  "# TYPE h histogram\nh_count 2\nc 4\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\n");
    put("no.txt", "not a metric");
    put("empty.prom", "");
    struct timespec times[2] = {{.tv_sec = 1500000000}, {.tv_sec = 1600000000, .tv_nsec = 999}};
    TEST_ASSERT_EQUAL(0, utimensat(AT_FDCWD, path_of("a.prom"), times, 0));
    open_directory(root);
    check_good(collect());
    check_has("# HELP b_total All.\n# TYPE b_total counter\nb_total{a=\"2\",z=\"1\"} 3\n");
    check_has("# TYPE c untyped\nc 4\n");
    check_has("# TYPE h histogram\nh_count 2\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\n");
    check_has("/a.prom\"} 1600000000\n");
    check_has("/empty.prom\"} ");
    check_lacks("no.txt");
}

static void test_a_broken_file_loses_only_itself(void) {
    put("a.prom", "a 1\n");
    put("b.prom", "b 1\nb 2x\n");
    put("c.prom", "c 1\n");
    open_directory(root);
    check_error(collect(), "%s/b.prom: line 2: column 3: expected a number, got \"2x\"");
    check_has("\na 1\n");
    check_has("\nc 1\n");
    check_lacks("\nb 1\n");
    check_lacks("b.prom");
    put("b.prom", "b 2\n");
    check_good(collect());
    check_has("\nb 2\n");
}

static void test_timestamps_are_refused(void) {
    put("a.prom", "a 1\nb 1 1700000000000\n");
    open_directory(root);
    check_error(collect(), "%s/a.prom: line 2: column 5: timestamps are not allowed here");
    check_lacks("\na 1\n");
}

static void test_what_is_no_file_neither_blocks_nor_hurts(void) {
    TEST_ASSERT_EQUAL(0, mkfifo(path_of("a.prom"), 0600));
    TEST_ASSERT_EQUAL(0, mkdir(path_of("b.prom"), 0700));
    TEST_ASSERT_EQUAL(0, symlink("/dev/zero", path_of("c.prom")));
    TEST_ASSERT_EQUAL(0, symlink("nowhere", path_of("d.prom")));
    put("e.prom", "e 1\n");
    open_directory(root);
    alarm(WAIT_LIMIT_S); /* ends the test where a pipe is waited for */
    check_error(collect(), "%s/a.prom: not a regular file (and 3 more)");
    alarm(0);
    check_has("\ne 1\n");
    TEST_ASSERT_EQUAL(0, unlink(path_of("a.prom")));
    TEST_ASSERT_EQUAL(0, rmdir(path_of("b.prom")));
    TEST_ASSERT_EQUAL(0, unlink(path_of("c.prom")));
    check_error(collect(), "stat %s/d.prom: No such file or directory");
}

static void test_limits_hold_for_each_file(void) {
    put("a.prom", "a{l=\"1\"} 1\na{l=\"2\"} 1\na{l=\"3\"} 1\n");
    put("b.prom", "b{l=\"1\"} 1\nb{l=\"2\"} 1\n");
    set("collector.textfile.max-series", "2");
    open_directory(root);
    check_error(collect(), "%s/a.prom: line 3: column 1: more than 2 samples");
    check_has("b{l=\"2\"} 1\n");
}

static void test_a_file_that_is_too_large_is_not_read(void) {
    put("a.prom", "a 1\n");
    put("b.prom", "b 1\n");
    TEST_ASSERT_EQUAL(0, truncate(path_of("b.prom"), 1025));
    set("collector.textfile.max-file-size", "1KiB");
    open_directory(root);
    check_error(collect(), "%s/b.prom: larger than 1024 bytes");
    check_has("\na 1\n");
}

static void test_no_more_files_than_allowed(void) {
    put("a.prom", "a 1\n");
    put("b.prom", "b 1\n");
    put("c.prom", "c 1\n");
    set("collector.textfile.max-files", "2");
    open_directory(root);
    check_error(collect(), "%s/c.prom: more than 2 files");
    check_has("\nb 1\n");
    check_lacks("\nc 1\n");
}

/* A good file of that many bytes. */
static void put_sized(const char *name, size_t size) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%c 1\n#", name[0]);
    while (text.len < size - 1) {
        buf_add_char(&text, '-');
    }
    buf_add_char(&text, '\n');
    put(name, buf_str(&text));
}

static void test_all_files_together_are_no_larger_than_allowed(void) {
    put_sized("a.prom", 500);
    put_sized("b.prom", 524);
    put("empty.prom", "");
    set("collector.textfile.max-total-size", "1KiB");
    open_directory(root);
    check_good(collect());
    check_good(collect());

    /* One that does not fit leaves its room to those after it. */
    put_sized("b.prom", 525);
    put("c.prom", "c 1\n");
    for (int round = 0; round < 2; round++) {
        check_error(collect(), "%s/b.prom: with it, the text files are larger than 1024 bytes");
        check_has("\na 1\n");
        check_lacks("\nb 1\n");
        check_has("\nc 1\n");
    }
    put_sized("b.prom", 100);
    check_good(collect());
    check_has("\nb 1\n");
}

static void test_families_of_one_name_merge(void) {
    put("1.prom", "a{f=\"1\"} 1\n# TYPE u gauge\nu 1\nv{f=\"1\"} 1\n");
    put("2.prom", "# HELP a Two.\n# TYPE a gauge\na{f=\"2\"} 2\nu{f=\"2\"} 1\n");
    put("3.prom", "# HELP a Three.\n# TYPE a gauge\na{f=\"3\"} 3\n");
    open_directory(root);
    check_good(collect());
    check_has("# HELP a Two.\n# TYPE a gauge\na{f=\"1\"} 1\na{f=\"2\"} 2\na{f=\"3\"} 3\n");
    check_has("# TYPE u gauge\nu 1\nu{f=\"2\"} 1\n");
    check_has("# HELP v From a text file, without a help text\n# TYPE v untyped\n");
}

static void test_where_types_disagree_the_first_file_wins(void) {
    put("1.prom", "# TYPE a counter\na{f=\"1\"} 1\n");
    put("2.prom", "# TYPE a gauge\na{f=\"2\"} 2\nb 1\n");
    put("3.prom", "# TYPE a summary\na_sum 3\n");
    put("4.prom", "# TYPE a counter\na{f=\"4\"} 4\n");
    open_directory(root);
    check_error(collect(), "%s/2.prom: gauge \"a\" is a counter in %s/1.prom (and 1 more)");
    check_has("# TYPE a counter\na{f=\"1\"} 1\na{f=\"4\"} 4\n");
    check_has("\nb 1\n");
    check_error(collect(), "%s/2.prom: gauge \"a\" is a counter in %s/1.prom (and 1 more)");
}

static void test_files_come_change_and_go(void) {
    open_directory(root);
    check_good(collect());
    put("a.prom", "a 1\n");
    check_good(collect());
    check_has("\na 1\n");
    put("new", "a 2\nb 2\n");
    char *from CLEANUP_FREE = strdup(path_of("new"));
    TEST_ASSERT_EQUAL(0, rename(from, path_of("a.prom")));
    put("0.prom", "z 1\n");
    check_good(collect());
    check_has("\na 2\n");
    check_has("\nb 2\n");
    check_has("\nz 1\n");
    TEST_ASSERT_EQUAL(0, unlink(path_of("a.prom")));
    check_good(collect());
    check_lacks("\na 2\n");
    check_lacks("a.prom");
    check_has("\nz 1\n");
    put("0.prom", "");
    check_good(collect());
    check_lacks("\nz 1\n");
}

static void test_directories_are_patterns_too(void) {
    TEST_ASSERT_EQUAL(0, mkdir(path_of("one"), 0700));
    TEST_ASSERT_EQUAL(0, mkdir(path_of("two"), 0700));
    put("one/a.prom", "a 1\n");
    put("two/b.prom", "b 1\n");
    set("collector.textfile.directory", path_of("*"));
    set("collector.textfile.directory", path_of("one"));
    open_directory(path_of("three[x]"));
    int r = collect();
    check_error(r, "open directory %s/three[x]: No such file or directory");
    check_has("\na 1\n");
    check_has("\nb 1\n");
    TEST_ASSERT_EQUAL(0, mkdir(path_of("three[x]"), 0700));
    check_good(collect());
}

static void test_an_unchanged_file_is_not_read_again(void) {
    static const struct textfile_limits limits = {
        .max_bytes = 1024,
        .left_bytes = 1024,
        .page = {.max_families = 10,
                 .max_samples = 10,
                 .max_labels = 10,
                 .max_name_len = 10,
                 .max_value_len = 10},
    };
    put("a.prom", "a 1\n");
    struct textfile_file file = {.row.key = (char *)path_of("a.prom")};
    bool changed = false;
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_TRUE(changed);
    TEST_ASSERT_FALSE(file.trusted); /* just written: it may change within a tick of the clock */

    file.samples[0].value = 2;
    file.trusted = true;
    changed = false;
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_FALSE(changed);
    TEST_ASSERT_EQUAL_DOUBLE(2, file.samples[0].value);

    file.trusted = true;
    TEST_ASSERT_EQUAL(0, utimensat(AT_FDCWD, file.row.key, (struct timespec[2]){{0}, {0}}, 0));
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_TRUE(changed);
    TEST_ASSERT_EQUAL_DOUBLE(1, file.samples[0].value);

    TEST_ASSERT_EQUAL(0, unlink(file.row.key));
    TEST_ASSERT_EQUAL(-ENOENT, textfile_file_refresh(&file, &limits, &changed));
    textfile_file_finish(&file);
}

static void test_an_unchanged_file_must_still_fit(void) {
    struct textfile_limits limits = {
        .max_bytes = 1024,
        .max_total_bytes = 2048,
        .left_bytes = 4,
        .page = {.max_families = 10,
                 .max_samples = 10,
                 .max_labels = 10,
                 .max_name_len = 10,
                 .max_value_len = 10},
    };
    put("a.prom", "a 1\n");
    struct textfile_file file = {.row.key = (char *)path_of("a.prom")};
    bool changed = false;
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_NULL(file.problem);

    file.trusted = true;
    limits.left_bytes = 3; /* a file before it has grown */
    changed = false;
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_TRUE(changed);
    TEST_ASSERT_NOT_NULL(strstr(file.problem, "larger than 2048 bytes"));
    TEST_ASSERT_EQUAL(0, file.n_families);

    limits.left_bytes = 4;
    TEST_ASSERT_EQUAL(0, textfile_file_refresh(&file, &limits, &changed));
    TEST_ASSERT_NULL(file.problem);
    TEST_ASSERT_EQUAL(1, file.n_families);
    textfile_file_finish(&file);
}

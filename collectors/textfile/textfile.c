#include "collectors/textfile/textfile.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/textfile/file.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

struct member {
    const struct textfile_family *family;
    const struct textfile_file *file;
};

/* Members of one name. */
struct group {
    struct metric_desc desc;
    const struct member *members;
    size_t n_members;
};

/* The families of all files, grouped by name. It borrows from the files. */
struct merge {
    struct member *members; /* sorted by name, then by path: the order of precedence */
    size_t n_members, cap_members;
    struct group *groups;
    size_t n_groups;
    size_t n_conflicts; /* families skipped because an earlier file has another type */
    struct error first_conflict;
};

static const char no_help[] = "From a text file, without a help text";

static void merge_finish(struct merge *merge) {
    free(merge->members);
    free(merge->groups);
    *merge = (struct merge){0};
}

static int compare_members(const void *a, const void *b) {
    const struct member *left = a;
    const struct member *right = b;
    int order = strcmp(left->family->desc.name, right->family->desc.name);
    return order != 0 ? order : strcmp(left->file->row.key, right->file->row.key);
}

static const struct textfile_file *file_at(const struct rows *files, size_t i) {
    return (const struct textfile_file *)files->all[i];
}

static void gather(struct merge *merge, const struct rows *files) {
    for (size_t i = 0; i < files->n; i++) {
        const struct textfile_file *file = file_at(files, i);
        ARRAY_GROW(&merge->members, &merge->cap_members, merge->n_members + file->n_families);
        for (size_t k = 0; k < file->n_families; k++) {
            merge->members[merge->n_members++] =
                (struct member){.family = &file->families[k], .file = file};
        }
    }
    if (merge->n_members > 0) {
        qsort(merge->members, merge->n_members, sizeof(*merge->members), compare_members);
    }
}

static bool is_simple(enum metric_type type) {
    return type == METRIC_COUNTER || type == METRIC_GAUGE;
}

/* Whether a family can join a group; a group without a type takes the family's. */
static bool join(struct group *group, const struct metric_desc *desc) {
    enum metric_type *type = &group->desc.type;
    if (*type == METRIC_UNTYPED && is_simple(desc->type)) {
        *type = desc->type;
    }
    if (*type != desc->type && !(is_simple(*type) && desc->type == METRIC_UNTYPED)) {
        return false;
    }
    group->desc.help = group->desc.help != NULL ? group->desc.help : desc->help;
    return true;
}

static void note_conflict(struct merge *merge, const struct group *group,
                          const struct member *member) {
    if (merge->n_conflicts++ == 0) {
        error_set(&merge->first_conflict, -EINVAL, "%s: %s \"%s\" is a %s in %s",
                  member->file->row.key, metric_type_name(member->family->desc.type),
                  member->family->desc.name, metric_type_name(group->desc.type),
                  group->members[0].file->row.key);
    }
}

/* Groups equal names; members of another type are dropped from the array. */
static void group_members(struct merge *merge) {
    size_t n_kept = 0;
    struct group *group = NULL;
    for (size_t i = 0; i < merge->n_members; i++) {
        struct member member = merge->members[i];
        const struct metric_desc *desc = &member.family->desc;
        if (group == NULL || strcmp(group->desc.name, desc->name) != 0) {
            group = &merge->groups[merge->n_groups++];
            *group = (struct group){.desc = *desc, .members = &merge->members[n_kept]};
        }
        if (!join(group, desc)) {
            note_conflict(merge, group, &member);
            continue;
        }
        merge->members[n_kept++] = member;
        group->n_members++;
    }
    merge->n_members = n_kept;
}

/* Of several help texts the first is used; a family without a type joins counters and gauges of its
 * name. */
static void merge_update(struct merge *merge, const struct rows *files) {
    merge_finish(merge);
    gather(merge, files);
    merge->groups = mem_zalloc(merge->n_members + 1, sizeof(*merge->groups));
    group_members(merge);
    for (size_t i = 0; i < merge->n_groups; i++) {
        const char **help = &merge->groups[i].desc.help;
        *help = *help != NULL ? *help : no_help;
    }
}

/* Adds all families; valid until the next change. */
static void merge_add(const struct merge *merge, struct snapshot *out) {
    for (size_t i = 0; i < merge->n_groups; i++) {
        const struct group *group = &merge->groups[i];
        for (size_t k = 0; k < group->n_members; k++) {
            const struct textfile_family *family = group->members[k].family;
            snapshot_append(out, &group->desc, family->samples, family->n_samples);
        }
    }
}

enum { MAX_NAME_LEN = 512 };

static const struct metric_desc mtime_desc = {
    .name = "node_textfile_mtime_seconds",
    .help = "Modification time of a text file that was read successfully, in seconds since 1970.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "file",
};

static const struct metric_desc scrape_error_desc = {
    .name = "node_textfile_scrape_error",
    .help = "1 if a text file or directory could not be read or used, else 0.",
    .type = METRIC_GAUGE,
};

static const struct metric_desc *const metrics[] = {&mtime_desc, &scrape_error_desc, NULL};

static const struct option options[] = {
    {
        .name = "collector.textfile.directory",
        .common = true,
        .type = OPTION_STRING,
        .repeatable = true,
        .help = "Directory whose *.prom files are served; may be a pattern such as /srv/*/metrics",
    },
    {
        .name = "collector.textfile.max-file-size",
        .type = OPTION_SIZE,
        .default_text = "16MiB",
        .min = 1024,
        .max = INT64_C(1) << 30,
        .help = "Size limit of a text file",
    },
    {
        .name = "collector.textfile.max-files",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 100000,
        .help = "Largest number of text files",
    },
    {
        .name = "collector.textfile.max-label-length",
        .type = OPTION_SIZE,
        .default_text = "4KiB",
        .min = 1,
        .max = 1 << 20,
        .help = "Longest label value in a text file",
    },
    {
        .name = "collector.textfile.max-labels",
        .type = OPTION_INT,
        .default_text = "64",
        .min = 1,
        .max = 1000,
        .help = "Largest number of labels of a series in a text file",
    },
    {
        .name = "collector.textfile.max-series",
        .type = OPTION_INT,
        .default_text = "200000",
        .min = 1,
        .max = 10000000,
        .help = "Largest number of series in a text file",
    },
    {
        .name = "collector.textfile.max-total-size",
        .type = OPTION_SIZE,
        .default_text = "64MiB",
        .min = 1024,
        .max = INT64_C(1) << 34,
        .help = "Size limit of all text files together; files beyond it are skipped",
    },
    {0},
};

struct textfile {
    const char *const *directories;
    struct textfile_limits limits;
    size_t max_files;
    struct rows files; /* sorted by path, but for those added in this round */
    struct merge merge;

    /* Of the current round: */
    bool changed;
    size_t n_seen;
    size_t n_problems;
    struct error first_problem;
};

static void textfile_close(void *state) {
    struct textfile *textfile = state;
    rows_finish(&textfile->files);
    merge_finish(&textfile->merge);
    free(textfile);
}

static int textfile_open(const struct collector_env *env, void **ret_state, struct error *err) {
    const struct settings *settings = env->settings;
    const char *const *directories = settings_list(settings, "collector.textfile.directory");
    if (directories[0] == NULL) {
        return error_set(err, -ENODEV, "no collector.textfile.directory is set");
    }
    struct textfile *textfile = mem_zalloc(1, sizeof(*textfile));
    textfile->directories = directories;
    textfile->files = (struct rows){sizeof(struct textfile_file), textfile_file_finish};
    textfile->max_files = (size_t)settings_int(settings, "collector.textfile.max-files");
    textfile->limits = (struct textfile_limits){
        .max_bytes = (size_t)settings_int(settings, "collector.textfile.max-file-size"),
        .max_total_bytes = (size_t)settings_int(settings, "collector.textfile.max-total-size"),
        .page =
            {
                .max_families = (size_t)settings_int(settings, "collector.textfile.max-series"),
                .max_samples = (size_t)settings_int(settings, "collector.textfile.max-series"),
                .max_labels = (size_t)settings_int(settings, "collector.textfile.max-labels"),
                .max_name_len = MAX_NAME_LEN,
                .max_value_len =
                    (size_t)settings_int(settings, "collector.textfile.max-label-length"),
                .no_timestamps = true,
            },
    };
    *ret_state = textfile;
    return 0;
}

/* Counts a problem; returns where to describe it, if it is the round's first one. */
static struct error *next_problem(struct textfile *textfile) {
    return textfile->n_problems++ == 0 ? &textfile->first_problem : NULL;
}

static void visit_file(struct textfile *textfile, const char *path) {
    const struct scan_word key = {path, strlen(path)};
    struct textfile_file *file = rows_find(&textfile->files, key);
    if (file != NULL && file->row.again) {
        return; /* the same directory was given twice */
    }
    if (textfile->n_seen == textfile->max_files) {
        error_set(next_problem(textfile), -E2BIG, "%s: more than %zu files", path,
                  textfile->max_files);
        if (file != NULL) {
            rows_unsee(&textfile->files, &file->row);
        }
        return;
    }
    if (file == NULL) {
        file = rows_see(&textfile->files, key);
        file->labels = labels_render("file", path);
    }
    if (textfile_file_refresh(file, &textfile->limits, &textfile->changed) == -ENOENT) {
        rows_unsee(&textfile->files, &file->row); /* gone since the directory was read */
        return;
    }
    textfile->n_seen++;
    if (file->problem != NULL) {
        error_set(next_problem(textfile), -EIO, "%s", file->problem);
        return;
    }
    textfile->limits.left_bytes -= (size_t)file->stamp.size;
}

static bool is_textfile(const char *name) {
    size_t len = strlen(name);
    return len >= 5 && memcmp(name + len - 5, ".prom", 5) == 0;
}

/* Sorted, so that the same problem is reported in every round. */
static void visit_directory(struct textfile *textfile, const char *path) {
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        error_set(next_problem(textfile), -errno, "open directory %s: %m", path);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (is_textfile(entries[i]->d_name)) {
            char *file_path CLEANUP_FREE = file_path_join(path, entries[i]->d_name);
            visit_file(textfile, file_path);
        }
        free(entries[i]);
    }
    free(entries);
}

/* A pattern without matches is used as a path. */
static void visit_pattern(struct textfile *textfile, const char *pattern) {
    glob_t found = {0};
    if (glob(pattern, GLOB_NOCHECK, NULL, &found) != 0) {
        error_set(next_problem(textfile), -ENOMEM, "%s: out of memory", pattern);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        visit_directory(textfile, found.gl_pathv[i]);
    }
    globfree(&found);
}

static int compare_rows(const void *a, const void *b) {
    return strcmp((*(struct row *const *)a)->key, (*(struct row *const *)b)->key);
}

/* Reads all files and sorts them by path. */
static void visit_all(struct textfile *textfile) {
    struct rows *files = &textfile->files;
    textfile->n_seen = 0;
    textfile->limits.left_bytes = textfile->limits.max_total_bytes;
    for (size_t i = 0; textfile->directories[i] != NULL; i++) {
        visit_pattern(textfile, textfile->directories[i]);
    }
    size_t n = files->n;
    rows_sweep(files);
    textfile->changed = textfile->changed || files->n < n;
    if (files->n > 0) {
        qsort(files->all, files->n, sizeof(*files->all), compare_rows);
    }
}

static void merge_files(struct textfile *textfile) {
    if (textfile->changed) {
        merge_update(&textfile->merge, &textfile->files);
    }
    textfile->changed = false;
    if (textfile->merge.n_conflicts > 0) {
        error_set(next_problem(textfile), -EINVAL, "%s", textfile->merge.first_conflict.text);
        textfile->n_problems += textfile->merge.n_conflicts - 1;
    }
}

static int textfile_collect(void *state, struct snapshot *out, struct error *err) {
    struct textfile *textfile = state;
    textfile->n_problems = 0;
    visit_all(textfile);
    merge_files(textfile);

    merge_add(&textfile->merge, out);
    for (size_t i = 0; i < textfile->files.n; i++) {
        const struct textfile_file *file = file_at(&textfile->files, i);
        if (file->problem == NULL) {
            snapshot_add(out, &mtime_desc, file->labels, (double)file->stamp.mtime.tv_sec);
        }
    }
    snapshot_add(out, &scrape_error_desc, NULL, textfile->n_problems > 0 ? 1 : 0);
    if (textfile->n_problems == 0) {
        return 0;
    }
    if (textfile->n_problems == 1) {
        return error_set(err, -EIO, "%s", textfile->first_problem.text);
    }
    return error_set(err, -EIO, "%s (and %zu more)", textfile->first_problem.text,
                     textfile->n_problems - 1);
}

const struct collector textfile_collector = {
    .name = "textfile",
    .help = "Metrics from *.prom files in given directories",
    .metrics = metrics,
    .options = options,
    .on_by_default = true,
    .open = textfile_open,
    .collect = textfile_collect,
    .close = textfile_close,
};

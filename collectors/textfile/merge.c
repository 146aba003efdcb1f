#include "collectors/textfile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct textfile_member {
    const struct textfile_family *family;
    const struct textfile_file *file;
    size_t number; /* of the file: the order of precedence */
};

/* Members of one name. */
struct textfile_group {
    struct metric_desc desc;
    const struct textfile_member *members;
    size_t n_members;
};

static const char no_help[] = "From a text file, without a help text";

void textfile_merge_finish(struct textfile_merge *merge) {
    free(merge->members);
    free(merge->groups);
    *merge = (struct textfile_merge){0};
}

static int compare_members(const void *a, const void *b) {
    const struct textfile_member *left = a;
    const struct textfile_member *right = b;
    int order = strcmp(left->family->desc.name, right->family->desc.name);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

static void gather(struct textfile_merge *merge, struct textfile_file *const *files,
                   size_t n_files) {
    for (size_t i = 0; i < n_files; i++) {
        for (size_t k = 0; k < files[i]->n_families; k++) {
            merge->members[merge->n_members++] = (struct textfile_member){
                .family = &files[i]->families[k],
                .file = files[i],
                .number = i,
            };
        }
    }
    if (merge->n_members > 0) {
        qsort(merge->members, merge->n_members, sizeof(*merge->members), compare_members);
    }
}

static bool is_simple(enum metric_type type) {
    return type == METRIC_COUNTER || type == METRIC_GAUGE;
}

/* Whether a family can join a group; a group without a type takes that of the newcomer. */
static bool join(struct textfile_group *group, const struct metric_desc *desc) {
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

static void note_conflict(struct textfile_merge *merge, const struct textfile_group *group,
                          const struct textfile_member *member) {
    if (merge->n_conflicts++ == 0) {
        error_set(&merge->first_conflict, -EINVAL, "%s: %s \"%s\" is a %s in %s",
                  member->file->path, metric_type_name(member->family->desc.type),
                  member->family->desc.name, metric_type_name(group->desc.type),
                  group->members[0].file->path);
    }
}

/* Makes groups of equal names; members that do not fit are dropped from the array. */
static void group_members(struct textfile_merge *merge) {
    size_t n_kept = 0;
    struct textfile_group *group = NULL;
    for (size_t i = 0; i < merge->n_members; i++) {
        struct textfile_member member = merge->members[i];
        const struct metric_desc *desc = &member.family->desc;
        if (group == NULL || strcmp(group->desc.name, desc->name) != 0) {
            group = &merge->groups[merge->n_groups++];
            *group = (struct textfile_group){.desc = *desc, .members = &merge->members[n_kept]};
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

int textfile_merge_update(struct textfile_merge *merge, struct textfile_file *const *files,
                          size_t n_files, struct error *err) {
    textfile_merge_finish(merge);
    size_t n = 0;
    for (size_t i = 0; i < n_files; i++) {
        n += files[i]->n_families;
    }
    merge->members = calloc(n + 1, sizeof(*merge->members));
    merge->groups = calloc(n + 1, sizeof(*merge->groups));
    if (merge->members == NULL || merge->groups == NULL) {
        textfile_merge_finish(merge);
        return error_set(err, -ENOMEM, "merge %zu families: out of memory", n);
    }
    gather(merge, files, n_files);
    group_members(merge);
    for (size_t i = 0; i < merge->n_groups; i++) {
        const char **help = &merge->groups[i].desc.help;
        *help = *help != NULL ? *help : no_help;
    }
    return 0;
}

void textfile_merge_add(const struct textfile_merge *merge, struct snapshot *out) {
    for (size_t i = 0; i < merge->n_groups; i++) {
        const struct textfile_group *group = &merge->groups[i];
        for (size_t k = 0; k < group->n_members; k++) {
            const struct textfile_family *family = group->members[k].family;
            snapshot_append(out, &group->desc, family->samples, family->n_samples);
        }
    }
}

#include "collectors/cgroup/cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/cgroup/metrics.h"
#include "collectors/cgroup/place.h"
#include "collectors/source/filter.h"
#include "collectors/source/io_series.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

#define FORGET_DEVICES_NS (60 * CLOCK_NS_PER_SEC)

static const struct option options[] = {
    {
        .name = "collector.cgroup.depth",
        .type = OPTION_INT,
        .default_text = "1",
        .max = 32,
        .help = "How far below the root cgroups are shown; 0: the root only",
    },
    {
        .name = "collector.cgroup.exclude",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Leave out cgroups whose path matches",
    },
    {
        .name = "collector.cgroup.include",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Show only cgroups whose path matches",
    },
    {
        .name = "collector.cgroup.max-cgroups",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 100000,
        .help = "Most cgroups that are shown",
    },
    {0},
};

struct group {
    char *path;
    struct labels *labels;
    struct cgroup_place place;
    struct io_series io;
    unsigned seen; /* in this round: a bit per hierarchy */
};

struct cgroup {
    const char *sysfs;
    struct cgroup_tree tree;
    struct labels *mode;
    struct filter include, exclude;
    size_t max_depth;
    size_t max_groups;
    struct group **groups;
    size_t n_groups, cap_groups;
    struct block_devices devices;
    int64_t forget_ns;
    struct buf path, scratch;
    struct cgroup_stats stats;

    /* Of the current round: */
    size_t row;  /* of the tree being walked */
    size_t next; /* the group that comes next if all is as in the round before */
    size_t n_left_out;
    int failure;
};

static void destroy_group(struct group *group) {
    cgroup_place_finish(&group->place);
    io_series_finish(&group->io);
    labels_destroy(group->labels);
    free(group->path);
    free(group);
}

static struct group *create_group(const char *path) {
    struct group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return NULL;
    }
    cgroup_place_init(&group->place);
    group->path = strdup(path);
    group->labels = labels_render("cgroup", path);
    if (group->path == NULL || group->labels == NULL) {
        destroy_group(group);
        return NULL;
    }
    return group;
}

static struct group *find_group(struct cgroup *cgroup, const char *path) {
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        size_t at = (cgroup->next + i) % cgroup->n_groups;
        if (strcmp(cgroup->groups[at]->path, path) == 0) {
            cgroup->next = at + 1;
            return cgroup->groups[at];
        }
    }
    return NULL;
}

static struct group *add_group(struct cgroup *cgroup, const char *path) {
    if (cgroup->n_groups == cgroup->cap_groups) {
        size_t cap = 2 * cgroup->cap_groups + 16;
        struct group **groups = reallocarray(cgroup->groups, cap, sizeof(struct group *));
        if (groups == NULL) {
            return NULL;
        }
        cgroup->groups = groups;
        cgroup->cap_groups = cap;
    }
    struct group *group = create_group(path);
    if (group != NULL) {
        cgroup->groups[cgroup->n_groups++] = group;
    }
    return group;
}

static bool chosen(const struct cgroup *cgroup, const char *path) {
    return (cgroup->include.regex == NULL || filter_matches(&cgroup->include, path)) &&
           !filter_matches(&cgroup->exclude, path);
}

static void see_group(struct cgroup *cgroup, const char *path, uint64_t inode) {
    struct group *group = find_group(cgroup, path);
    if (group == NULL && !chosen(cgroup, path)) {
        return;
    }
    if (group == NULL && cgroup->n_groups >= cgroup->max_groups) {
        cgroup->n_left_out++;
        return;
    }
    group = group != NULL ? group : add_group(cgroup, path);
    int r = group == NULL
                ? -ENOMEM
                : cgroup_place_enter(&group->place, &cgroup->tree, cgroup->row, path, inode);
    if (r == 0) {
        group->seen |= 1U << cgroup->row;
    } else if (!cgroup_place_absent(r) && cgroup->failure == 0) {
        cgroup->failure = r;
    }
}

/* What is a container is left to the collector of containers. */
static bool visit(void *context, const char *path, uint64_t inode, size_t depth) {
    struct cgroup *cgroup = context;
    struct container_path container;
    if (depth > cgroup->max_depth || container_path_classify(path, &container)) {
        return false;
    }
    see_group(cgroup, path, inode);
    return depth < cgroup->max_depth;
}

static void drop_unseen(struct cgroup *cgroup) {
    size_t kept = 0;
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        struct group *group = cgroup->groups[i];
        for (size_t row = 0; row < cgroup->tree.n_rows; row++) {
            if ((group->seen & 1U << row) == 0) {
                cgroup_place_leave(&group->place, row);
            }
        }
        if (group->seen == 0) {
            destroy_group(group);
        } else {
            cgroup->groups[kept++] = group;
        }
    }
    cgroup->n_groups = kept;
}

static int find_groups(struct cgroup *cgroup, struct error *err) {
    cgroup->n_left_out = 0;
    cgroup->failure = 0;
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        cgroup->groups[i]->seen = 0;
    }
    int result = 0;
    for (cgroup->row = 0; cgroup->row < cgroup->tree.n_rows; cgroup->row++) {
        cgroup->next = 0;
        see_group(cgroup, "/", 0);
        if (cgroup->max_depth > 0) {
            int r = cgroup_tree_walk(&cgroup->tree.rows[cgroup->row], "", &cgroup->path, visit,
                                     cgroup, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    drop_unseen(cgroup);
    if (result == 0 && cgroup->failure < 0) {
        return error_set(err, cgroup->failure, "open a cgroup: %s", strerror(-cgroup->failure));
    }
    if (result == 0 && cgroup->n_left_out > 0) {
        return error_set(err, -E2BIG, "more than %zu cgroups (collector.cgroup.max-cgroups)",
                         cgroup->max_groups);
    }
    return result;
}

static void add_devices(struct cgroup *cgroup, struct group *group, struct snapshot *out) {
    for (size_t i = 0; i < cgroup->stats.n_devices; i++) {
        const struct cgroup_io *device = &cgroup->stats.devices[i];
        const struct labels *labels =
            io_series_labels(&group->io, group->labels, "", &cgroup->devices, cgroup->sysfs,
                             device->major, device->minor);
        for (size_t value = 0; labels != NULL && value < CGROUP_IO_N_VALUES; value++) {
            if (!isnan(device->values[value])) {
                snapshot_add(out, &cgroup_io_metrics[value], labels, device->values[value]);
            }
        }
    }
}

static void forget_devices(struct cgroup *cgroup, int64_t now_ns) {
    if (now_ns < cgroup->forget_ns) {
        return;
    }
    cgroup->forget_ns = now_ns + FORGET_DEVICES_NS;
    block_devices_forget(&cgroup->devices);
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        io_series_finish(&cgroup->groups[i]->io);
    }
}

static int cgroup_collect(void *state, struct snapshot *out, struct error *err) {
    struct cgroup *cgroup = state;
    int64_t now_ns = clock_monotonic_ns();
    forget_devices(cgroup, now_ns);
    int result = find_groups(cgroup, err);
    struct cgroup_reading reading = {&cgroup->tree, CGROUP_FOR_CGROUP, NULL, &cgroup->scratch};
    snapshot_add(out, &cgroup_mode_metric, cgroup->mode, 1);
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        struct group *group = cgroup->groups[i];
        int r = cgroup_place_read(&group->place, &reading, now_ns, &cgroup->stats,
                                  result == 0 ? err : NULL);
        result = result == 0 ? r : result;
        cgroup_metrics_add(&cgroup->stats, group->labels, out);
        add_devices(cgroup, group, out);
    }
    return result;
}

static void cgroup_close(void *state) {
    struct cgroup *cgroup = state;
    if (cgroup == NULL) {
        return;
    }
    for (size_t i = 0; i < cgroup->n_groups; i++) {
        destroy_group(cgroup->groups[i]);
    }
    free(cgroup->groups);
    cgroup_tree_close(&cgroup->tree);
    filter_finish(&cgroup->include);
    filter_finish(&cgroup->exclude);
    block_devices_finish(&cgroup->devices);
    cgroup_stats_finish(&cgroup->stats);
    labels_destroy(cgroup->mode);
    buf_finish(&cgroup->path);
    buf_finish(&cgroup->scratch);
    free(cgroup);
}

static int prepare(struct cgroup *cgroup, const struct collector_env *env, struct error *err) {
    int r = cgroup_tree_open(&cgroup->tree, env->cgroupfs, err);
    if (r == 0) {
        r = filter_init(&cgroup->include, env->settings, "collector.cgroup.include", err);
    }
    if (r == 0) {
        r = filter_init(&cgroup->exclude, env->settings, "collector.cgroup.exclude", err);
    }
    if (r < 0) {
        return r;
    }
    cgroup->sysfs = env->sysfs;
    cgroup->max_depth = (size_t)settings_int(env->settings, "collector.cgroup.depth");
    cgroup->max_groups = (size_t)settings_int(env->settings, "collector.cgroup.max-cgroups");
    cgroup->mode = labels_render("mode", cgroup_mode_name(cgroup->tree.mode));
    return cgroup->mode != NULL ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int cgroup_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct cgroup *cgroup = calloc(1, sizeof(*cgroup));
    if (cgroup == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = prepare(cgroup, env, err);
    if (r < 0) {
        cgroup_close(cgroup);
        return r;
    }
    *ret_state = cgroup;
    return 0;
}

const struct collector cgroup_collector = {
    .name = "cgroup",
    .help = "CPU, memory, disks, tasks and pressure of control groups, v1 and v2",
    .metrics = cgroup_metrics,
    .options = options,
    .on_by_default = true,
    .open = cgroup_open,
    .collect = cgroup_collect,
    .close = cgroup_close,
};

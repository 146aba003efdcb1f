#include "collectors/container/energy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/source/energy.h"
#include "collectors/source/energy_model.h"
#include "collectors/source/procfs.h"
#include "collectors/source/rows.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

enum { MAX_IMAGES = 256 };

/* The machine's CPU time is counted in ticks, too coarse for a shorter interval. */
#define STEP_NS CLOCK_NS_PER_SEC
#define MIN_STEP_NS (50 * CLOCK_NS_PER_MS)

/* A younger meter is counted from its beginning. */
static const double young_seconds = 2;

struct meter {
    uint64_t number; /* of the energy_row */
    struct energy_reading last;
    struct energy_model model;
};

/* Ended containers of one image. */
struct image {
    struct row row; /* its name */
    struct labels *labels;
    double n, cpu_seconds, lifetime_seconds, joules;
    double left_cpu_seconds; /* not attributed yet */
};

struct container_energy {
    const struct container_set *set;
    struct rows images;
    struct energy *energy;
    struct energy_list list; /* the latest readings */
    struct meter *meters;
    size_t n_meters;
    struct source_file stat; /* /proc/stat */
    struct buf scratch;
    double opened_seconds; /* since 1970 */
    int64_t last_step_ns;
    double busy_seconds; /* of all CPUs at the last step; NAN: not known */
    bool measured;
    bool measures_cpus; /* not only GPUs */
    double idle_joules, shared_joules;
    struct labels *idle, *shared;
};

static void finish_image(void *row) {
    struct image *image = row;
    labels_destroy(image->labels);
}

void container_energy_destroy(struct container_energy *energy) {
    if (energy == NULL) {
        return;
    }
    rows_finish(&energy->images);
    energy_list_finish(&energy->list);
    free(energy->meters);
    source_file_finish(&energy->stat);
    buf_finish(&energy->scratch);
    labels_destroy(energy->idle);
    labels_destroy(energy->shared);
    free(energy);
}

struct container_energy *container_energy_create(const struct collector_env *env,
                                                 const struct container_set *set) {
    struct container_energy *energy = mem_zalloc(1, sizeof(*energy));
    energy->set = set;
    energy->images = (struct rows){sizeof(struct image), finish_image};
    energy->energy = env->energy;
    energy->opened_seconds = clock_file_seconds(); /* the clock of cgroups' time stamps */
    energy->busy_seconds = NAN;
    energy->idle = labels_render("source", "idle");
    energy->shared = labels_render("source", "shared");
    source_file_init(&energy->stat, env->procfs, "stat", NULL);
    return energy;
}

/* ---- meters ---- */

static struct meter *find_meter(struct container_energy *energy, const struct energy_row *row) {
    for (size_t i = 0; i < energy->n_meters; i++) {
        if (energy->meters[i].number == row->meter) {
            return &energy->meters[i];
        }
    }
    energy->meters = mem_resize(energy->meters, energy->n_meters + 1, sizeof(*energy->meters));
    struct meter *meter = &energy->meters[energy->n_meters++];
    *meter = (struct meter){.number = row->meter};
    energy_model_init(&meter->model);
    if (row->reading.seconds > young_seconds) {
        meter->last = row->reading;
    }
    return meter;
}

/* Drops meters that were closed. */
static void forget_meters(struct container_energy *energy) {
    size_t kept = 0;
    for (size_t i = 0; i < energy->n_meters; i++) {
        bool listed = false;
        for (size_t row = 0; row < energy->list.n_rows && !listed; row++) {
            listed = energy->list.rows[row].meter == energy->meters[i].number;
        }
        if (listed) {
            energy->meters[kept++] = energy->meters[i];
        }
    }
    energy->n_meters = kept;
}

/* Whether any meter has counted energy. */
static bool has_risen(struct container_energy *energy) {
    bool risen = false;
    for (size_t i = 0; i < energy->list.n_rows; i++) {
        const struct energy_row *row = &energy->list.rows[i];
        risen = find_meter(energy, row)->last.joules < row->reading.joules || risen;
    }
    return risen;
}

static double read_busy_seconds(struct container_energy *energy) {
    uint64_t ticks;
    if (source_file_read(&energy->stat, &energy->scratch, NULL) < 0 ||
        cpu_stat_parse_busy(buf_str(&energy->scratch), &ticks) < 0) {
        return NAN;
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* ---- attribution ---- */

/* CPU time used before the daemon started does not count. */
static double base_seconds(const struct container_energy *energy,
                           const struct container *container) {
    if (!isnan(container->counted_seconds)) {
        return container->counted_seconds;
    }
    return container->start_seconds < energy->opened_seconds ? container->used_seconds : 0;
}

/* CPU time whose energy is not attributed yet. */
static double left_seconds(const struct container_energy *energy,
                           const struct container *container) {
    return fmax(container->used_seconds - base_seconds(energy, container), 0);
}

static struct image *image_at(const struct container_energy *energy, size_t i) {
    return (struct image *)energy->images.all[i];
}

static double containers_cpu_seconds(const struct container_energy *energy) {
    double sum = 0;
    for (size_t i = 0; i < energy->set->n_rows; i++) {
        sum += left_seconds(energy, energy->set->rows[i]);
    }
    for (size_t i = 0; i < energy->images.n; i++) {
        sum += image_at(energy, i)->left_cpu_seconds;
    }
    return sum;
}

/* The energy of a container that is not shown is shared. */
static void give(struct container_energy *energy, struct container *container,
                 enum container_energy_source source, double joules) {
    container->joules[source] += joules;
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES && container->labels == NULL; i++) {
        energy->shared_joules += container->joules[i];
        container->joules[i] = 0;
    }
}

/* A process in another cgroup namespace shows another path; the id is the same. */
static struct container *find_container(const struct container_set *set, const char *path) {
    struct container_path classified;
    bool found = container_path_classify(path, &classified);
    for (size_t i = 0; found && i < set->n_rows; i++) {
        if (container_has_id(set->rows[i], &classified)) {
            return set->rows[i];
        }
    }
    return NULL;
}

static void give_gpu(struct container_energy *energy, const struct energy_row *row, double joules) {
    double left = joules;
    for (size_t i = 0; i < row->n_shares; i++) {
        struct container *container = find_container(energy->set, row->shares[i].id);
        double part = fmin(joules * row->shares[i].ratio, left);
        if (container != NULL && part > 0) {
            give(energy, container, CONTAINER_ENERGY_GPU, part);
            left -= part;
        }
    }
    energy->shared_joules += left;
}

/* Splits a meter's energy; returns the part to attribute by CPU time. */
static double take_meter(struct container_energy *energy, const struct energy_row *row,
                         double cpu_seconds, int64_t now_ns) {
    struct meter *meter = find_meter(energy, row);
    if (!(row->reading.joules > meter->last.joules)) {
        return 0;
    }
    const struct energy_reading *last = &meter->last;
    double seconds = row->reading.seconds - last->seconds;
    struct energy_step step = {
        .seconds = seconds,
        .joules = row->reading.joules - last->joules,
        .gpu_joules = row->reading.gpu_joules - last->gpu_joules,
        .gpu_busy = fmin((row->reading.gpu_busy_seconds - last->gpu_busy_seconds) / seconds, 1),
        .cpu_seconds = cpu_seconds,
    };
    meter->last = row->reading;
    struct energy_split split = energy_model_split(&meter->model, now_ns, &step);
    energy->idle_joules += split.idle;
    give_gpu(energy, row, split.gpu);
    energy->measured = true;
    energy->measures_cpus = energy->measures_cpus || !(step.gpu_joules >= step.joules);
    return split.cpu;
}

static void give_cpu(struct container_energy *energy, double joules, double cpu_seconds) {
    double per_second = cpu_seconds > 0 ? joules / cpu_seconds : 0;
    double left = joules;
    for (size_t i = 0; i < energy->set->n_rows; i++) {
        struct container *container = energy->set->rows[i];
        double part = per_second * left_seconds(energy, container);
        if (container->used_seconds > 0) { /* else it was not read yet */
            container->counted_seconds = container->used_seconds;
        }
        give(energy, container, CONTAINER_ENERGY_CPU, part);
        left -= part;
    }
    for (size_t i = 0; i < energy->images.n; i++) {
        struct image *image = image_at(energy, i);
        double part = per_second * image->left_cpu_seconds;
        image->joules += part;
        image->left_cpu_seconds = 0;
        left -= part;
    }
    energy->shared_joules += fmax(left, 0);
}

void container_energy_step(struct container_energy *energy, bool at_once, int64_t now_ns) {
    int64_t wait_ns = at_once ? MIN_STEP_NS : STEP_NS;
    if (energy->last_step_ns != 0 && now_ns - energy->last_step_ns < wait_ns) {
        return;
    }
    energy_read(energy->energy, &energy->list);
    forget_meters(energy);
    if (!has_risen(energy)) {
        return;
    }
    energy->last_step_ns = now_ns;
    double busy = read_busy_seconds(energy);
    double machine = busy - energy->busy_seconds; /* NAN the first time */
    energy->busy_seconds = busy;
    /* Ticks may miss time that the containers' own clocks count. */
    double cpu_seconds = isnan(machine) ? NAN : fmax(machine, containers_cpu_seconds(energy));
    double joules = 0;
    for (size_t i = 0; i < energy->list.n_rows; i++) {
        joules += take_meter(energy, &energy->list.rows[i], cpu_seconds, now_ns);
    }
    give_cpu(energy, joules, cpu_seconds);
}

static struct image *find_image(struct container_energy *energy, const char *name) {
    struct image *image = rows_find(&energy->images, (struct scan_word){name, strlen(name)});
    if (image == NULL) {
        name = energy->images.n < MAX_IMAGES - 1 ? name : "other";
        image = rows_see(&energy->images, (struct scan_word){name, strlen(name)});
    }
    if (image->row.is_new) {
        image->labels = labels_render("image", name);
    }
    return image;
}

void container_energy_count_ended(struct container_energy *energy,
                                  const struct container *container) {
    const char *name = container->info.image;
    struct image *image = find_image(energy, name != NULL ? name : "");
    image->n++;
    image->cpu_seconds += container->used_seconds;
    image->lifetime_seconds += fmax(clock_wall_seconds() - container->start_seconds, 0);
    image->left_cpu_seconds += left_seconds(energy, container);
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES; i++) {
        image->joules += container->joules[i];
    }
}

static void add_container(const struct container_energy *energy, const struct container *container,
                          const struct metric_desc *desc, struct snapshot *out) {
    for (size_t source = 0; source < CONTAINER_N_ENERGY_SOURCES; source++) {
        const struct labels *labels = container->energy_labels[source];
        bool used = container->joules[source] > 0 ||
                    (source == CONTAINER_ENERGY_CPU && energy->measures_cpus);
        if (labels != NULL && used) {
            snapshot_add(out, desc, labels, container->joules[source]);
        }
    }
}

void container_energy_add(const struct container_energy *energy, const struct metric_desc *descs,
                          struct snapshot *out) {
    const struct metric_desc *desc = &descs[CONTAINER_ENERGY];
    if (energy->measured) {
        for (size_t i = 0; i < energy->set->n_rows; i++) {
            add_container(energy, energy->set->rows[i], desc, out);
        }
        snapshot_add(out, desc, energy->idle, energy->idle_joules);
        snapshot_add(out, desc, energy->shared, energy->shared_joules);
    }
    for (size_t i = 0; i < energy->images.n; i++) {
        const struct image *image = image_at(energy, i);
        snapshot_add(out, &descs[CONTAINER_FINISHED], image->labels, image->n);
        snapshot_add(out, &descs[CONTAINER_FINISHED_CPU], image->labels, image->cpu_seconds);
        snapshot_add(out, &descs[CONTAINER_FINISHED_LIFETIME], image->labels,
                     image->lifetime_seconds);
        if (energy->measured) {
            snapshot_add(out, &descs[CONTAINER_FINISHED_ENERGY], image->labels, image->joules);
        }
    }
}

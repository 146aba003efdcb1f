#include "placement/control/waggle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "placement/control/loop.h"
#include "placement/service/service.h"

/* ---- messages ---- */

/* A container on the page. Texts lie in the page. */
struct usage {
    const char *id, *task, *job, *image;
    double cpu_seconds, memory_bytes, gpu_ratio, gpu_memory_bytes; /* NAN: unknown */
};

/* What is read from one page. */
struct reading {
    const struct exposition_doc *page;
    const char *namespace;
    struct usage *usages;
    size_t n_usages;
    double gpu_ratio; /* of the busiest GPU; NAN: unknown */
};

struct waggle {
    struct past {
        char *id;
        double cpu_seconds;
    } * past; /* of the page before */
    size_t n_past;
    int64_t past_ns;

    /* of the service */
    const struct control_config *config;
    struct service_task task;
    struct web_client *exporter;
    char *place; /* our folder in the directory */
    int code;    /* of the last round */
    struct error error;
    bool is_failing; /* it has been logged */
};

struct waggle *waggle_create(void) {
    return mem_zalloc(1, sizeof(struct waggle));
}

static void forget(struct waggle *waggle) {
    for (size_t i = 0; i < waggle->n_past; i++) {
        free(waggle->past[i].id);
    }
    free(waggle->past);
}

void waggle_destroy(struct waggle *waggle) {
    if (waggle != NULL) {
        forget(waggle);
        web_client_destroy(waggle->exporter);
        free(waggle->place);
    }
    free(waggle);
}

/* ---- reading ---- */

static const char *first_of(const char *a, const char *b) {
    return a[0] != '\0' ? a : b;
}

static struct usage *find_usage(const struct reading *in, const char *id) {
    for (size_t i = 0; i < in->n_usages; i++) {
        if (strcmp(in->usages[i].id, id) == 0) {
            return &in->usages[i];
        }
    }
    return NULL;
}

/* Every container has CPU time, and its labels have the names. */
static void take_cpu(struct reading *in, const struct exposition_sample *sample, size_t offset) {
    (void)offset;
    const struct exposition_doc *page = in->page;
    const char *cpu = exposition_doc_label(page, sample, "cpu");
    const char *id = exposition_doc_label(page, sample, "id");
    const char *name = first_of(exposition_doc_label(page, sample, "container"),
                                exposition_doc_label(page, sample, "name"));
    bool is_meant = in->namespace[0] == '\0' ||
                    strcmp(exposition_doc_label(page, sample, "namespace"), in->namespace) == 0;
    bool is_total = cpu[0] == '\0' || strcmp(cpu, "total") == 0;
    if (!is_meant || !is_total || name[0] == '\0' || find_usage(in, id) != NULL) {
        return;
    }
    in->usages[in->n_usages++] = (struct usage){
        .id = id,
        .task = first_of(
            exposition_doc_label(page, sample, "container_label_sagecontinuum_org_plugin_task"),
            name),
        .job = exposition_doc_label(page, sample, "container_label_sagecontinuum_org_plugin_job"),
        .image = exposition_doc_label(page, sample, "image"),
        .cpu_seconds = sample->value,
        .memory_bytes = NAN,
        .gpu_ratio = NAN,
        .gpu_memory_bytes = NAN,
    };
}

static void take_value(struct reading *in, const struct exposition_sample *sample, size_t offset) {
    struct usage *usage = find_usage(in, exposition_doc_label(in->page, sample, "id"));
    if (usage != NULL) {
        double *value = (double *)((char *)usage + offset);
        *value = fmax(*value, sample->value);
    }
}

static void take_gpu(struct reading *in, const struct exposition_sample *sample, size_t offset) {
    (void)offset;
    in->gpu_ratio = fmax(in->gpu_ratio, sample->value);
}

static const char gpu_memory[] = "container_gpu_memory_bytes";

/* In this order: the containers come first. */
static const struct {
    const char *name;
    void (*take)(struct reading *in, const struct exposition_sample *sample, size_t offset);
    size_t offset;
} families[] = {
    {"container_cpu_usage_seconds_total", take_cpu, 0},
    {"container_memory_working_set_bytes", take_value, offsetof(struct usage, memory_bytes)},
    {gpu_memory, take_value, offsetof(struct usage, gpu_memory_bytes)},
    {"container_gpu_utilization_ratio", take_value, offsetof(struct usage, gpu_ratio)},
    {"gpu_utilization_ratio", take_gpu, 0},
};

static void take_family(struct reading *in, size_t index) {
    const struct exposition_doc *page = in->page;
    const char *name = families[index].name;
    const struct exposition_family *family = exposition_doc_find(page, name, strlen(name));
    if (family == NULL) {
        return;
    }
    uint32_t number = (uint32_t)(family - page->families);
    for (size_t i = 0; i < page->n_samples; i++) {
        if (page->samples[i].family == number && isfinite(page->samples[i].value)) {
            families[index].take(in, &page->samples[i], families[index].offset);
        }
    }
}

/* ---- writing ---- */

static void put_text(struct buf *out, const char *key, const char *text) {
    if (text[0] != '\0') {
        json_put_string(out, key, text);
    }
}

static void write_message(struct buf *json, const struct usage *usage, const char *name,
                          double value, int64_t wall_ns) {
    json_open(json, NULL, '{');
    json_put_string(json, "name", name);
    json_put(json, "ts", "%" PRId64, wall_ns);
    json_open(json, "meta", '{');
    put_text(json, "job", usage->job);
    put_text(json, "plugin", usage->image);
    put_text(json, "task", usage->task);
    json_close(json, '}');
    json_put_number(json, "val", value);
    json_close(json, '}');
}

/* Unknown on the first page, and after a counter has restarted. */
static double cpu_percent(const struct waggle *waggle, const struct usage *usage, int64_t now_ns) {
    size_t i = 0;
    while (i < waggle->n_past && strcmp(waggle->past[i].id, usage->id) != 0) {
        i++;
    }
    double seconds = (double)(now_ns - waggle->past_ns) / 1e9;
    bool is_known =
        i < waggle->n_past && seconds > 0 && usage->cpu_seconds >= waggle->past[i].cpu_seconds;
    return is_known ? (usage->cpu_seconds - waggle->past[i].cpu_seconds) / seconds * 100 : NAN;
}

static double gpu_percent(const struct reading *in, const struct usage *usage) {
    bool is_shared = exposition_doc_find(in->page, gpu_memory, strlen(gpu_memory)) != NULL;
    return !isnan(usage->gpu_ratio)                    ? usage->gpu_ratio * 100
           : usage->gpu_memory_bytes > 0 || !is_shared ? in->gpu_ratio * 100
                                                       : NAN;
}

static void remember(struct waggle *waggle, const struct reading *in, int64_t now_ns) {
    forget(waggle);
    waggle->past = mem_zalloc(in->n_usages, sizeof(*waggle->past));
    waggle->n_past = in->n_usages;
    waggle->past_ns = now_ns;
    for (size_t i = 0; i < in->n_usages; i++) {
        waggle->past[i].id = mem_strdup(in->usages[i].id);
        waggle->past[i].cpu_seconds = in->usages[i].cpu_seconds;
    }
}

int waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context,
                struct error *err) {
    struct usage *usages CLEANUP_FREE = mem_zalloc(page->n_samples, sizeof(*usages));
    struct reading in = {.page = page, .namespace = namespace, .usages = usages, .gpu_ratio = NAN};
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        take_family(&in, i);
    }
    for (size_t i = 0; i < in.n_usages; i++) {
        const struct {
            const char *name;
            double value;
        } figures[] = {
            {"sys.plugin.perf.cpu", cpu_percent(waggle, &usages[i], monotonic_ns)},
            {"sys.plugin.perf.gpu", gpu_percent(&in, &usages[i])},
            {"sys.plugin.perf.mem", usages[i].memory_bytes},
        };
        for (size_t k = 0; r == 0 && k < ARRAY_LEN(figures); k++) {
            struct buf json CLEANUP_BUF = {0};
            if (!isnan(figures[k].value)) {
                write_message(&json, &usages[i], figures[k].name, figures[k].value, wall_ns);
                r = emit(context, figures[k].name, &json, err);
            }
        }
    }
    remember(waggle, &in, monotonic_ns);
    return r;
}

/* ---- files ---- */

/* If the agent does not collect the files, they must not fill the memory that /run is in. */
enum { MAX_FILES = 3000 };

/* The files of one round. */
struct round {
    const char *place;
    DIR *directory;
    int64_t wall_ns;
    size_t n_files; /* in the folder */
    size_t n_written;
};

/* The agent skips files whose names begin with a dot, so it never reads half a message. */
static int write_file(int dir_fd, const char *name, const struct buf *text) {
    static const char temporary[] = ".waap";
    int fd CLEANUP_CLOSE =
        openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return -errno;
    }
    ssize_t n = write(fd, text->data, text->len);
    if (n != (ssize_t)text->len) {
        return n < 0 ? -errno : -ENOSPC;
    }
    return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
}

static int emit(void *context, const char *name, const struct buf *json, struct error *err) {
    struct round *round = context;
    if (round->n_files >= MAX_FILES) {
        return error_set(err, -ENOSPC,
                         "%s: %d files wait for wes-metrics-agent; no more are written",
                         round->place, MAX_FILES);
    }
    struct buf file CLEANUP_BUF = {0};
    buf_printf(&file, "%" PRId64 "-%zu-%s", round->wall_ns, round->n_written, name);
    int r = write_file(dirfd(round->directory), buf_str(&file), json);
    round->n_files++;
    round->n_written++;
    return r < 0 ? error_set(err, r, "%s/%s: %s", round->place, buf_str(&file), strerror(-r)) : 0;
}

static int open_place(struct round *round, struct error *err) {
    const struct dirent *entry;
    if (mkdir(round->place, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "create %s: %m", round->place);
    }
    round->directory = opendir(round->place);
    if (round->directory == NULL) {
        return error_set(err, -errno, "open %s: %m", round->place);
    }
    while ((entry = readdir(round->directory)) != NULL) {
        round->n_files += entry->d_name[0] != '.';
    }
    return 0;
}

static int run_round(struct waggle *waggle, struct error *err) {
    struct control_page page CLEANUP_CONTROL_PAGE = {0};
    struct round round = {.place = waggle->place};
    int r = control_page_read(waggle->config, waggle->exporter, &page, err);
    r = r < 0 ? r : open_place(&round, err);
    if (r == 0) {
        round.wall_ns = (int64_t)(clock_wall_seconds() * 1e9);
        r = waggle_take(waggle, &page.doc, waggle->config->waggle.namespace, round.wall_ns,
                        clock_monotonic_ns(), emit, &round, err);
        closedir(round.directory);
    }
    return r;
}

/* ---- the service ---- */

static void round_run(struct service_task *task) {
    struct waggle *waggle = CONTAINER_OF(task, struct waggle, task);
    waggle->code = run_round(waggle, &waggle->error);
}

static void round_done(struct service_task *task) {
    struct waggle *waggle = CONTAINER_OF(task, struct waggle, task);
    bool failed = waggle->code < 0;
    if (failed && !waggle->is_failing) {
        log_warn("control: waggle: %s", waggle->error.text);
    } else if (!failed && waggle->is_failing) {
        log_info("control: waggle: writing again");
    }
    waggle->is_failing = failed;
}

int waggle_start(struct waggle *waggle, struct loop *loop, const struct control_config *config,
                 struct error *err) {
    waggle->config = config;
    waggle->place = file_path_join(config->waggle.directory, "waap");
    waggle->task = (struct service_task){
        .run = round_run, .done = round_done, .interval_ms = config->waggle.interval_ms};
    int r = web_client_create(&config->exporter, &waggle->exporter, err);
    return r < 0 ? r : service_task_start(&waggle->task, loop, "waggle", err);
}

bool waggle_stop(struct waggle *waggle) {
    if (waggle->exporter != NULL) {
        web_client_abort(waggle->exporter);
    }
    return service_task_stop(&waggle->task);
}

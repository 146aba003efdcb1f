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
#include "exporter/loop/worker.h"
#include "placement/control/loop.h"

/* ---- messages ---- */

/* A container on the page. Texts lie in the page. */
struct usage {
    const char *id, *task, *job, *image;
    double cpu_seconds, memory_bytes, gpu_ratio; /* NAN: unknown */
    bool has_gpu_memory;
};

/* The values of the page before. */
struct past {
    char *id;
    double cpu_seconds;
    int64_t ns;
};

struct waggle {
    struct past *past;
    size_t n_past;
};

/* What is read off one page. */
struct reading {
    const struct exposition_doc *page;
    const char *namespace;
    struct usage *usages;
    size_t n_usages;
    double gpu_ratio; /* of the busiest GPU; NAN: unknown */
    bool has_gpu_memory;
};

struct waggle *waggle_create(void) {
    return mem_zalloc(1, sizeof(struct waggle));
}

static void free_past(struct past *past, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(past[i].id);
    }
    free(past);
}

void waggle_destroy(struct waggle *waggle) {
    if (waggle != NULL) {
        free_past(waggle->past, waggle->n_past);
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
static void take_cpu(struct reading *in, const struct exposition_sample *sample) {
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
    };
}

static void take_memory(struct reading *in, const struct exposition_sample *sample) {
    struct usage *usage = find_usage(in, exposition_doc_label(in->page, sample, "id"));
    if (usage != NULL) {
        usage->memory_bytes = sample->value;
    }
}

static void take_gpu_memory(struct reading *in, const struct exposition_sample *sample) {
    struct usage *usage = find_usage(in, exposition_doc_label(in->page, sample, "id"));
    in->has_gpu_memory = true;
    if (usage != NULL && sample->value > 0) {
        usage->has_gpu_memory = true;
    }
}

static void take_gpu_share(struct reading *in, const struct exposition_sample *sample) {
    struct usage *usage = find_usage(in, exposition_doc_label(in->page, sample, "id"));
    if (usage != NULL) {
        usage->gpu_ratio = fmax(usage->gpu_ratio, sample->value);
    }
}

static void take_gpu(struct reading *in, const struct exposition_sample *sample) {
    in->gpu_ratio = fmax(in->gpu_ratio, sample->value);
}

/* In this order: the containers come first. */
static const struct {
    const char *name;
    void (*take)(struct reading *in, const struct exposition_sample *sample);
} families[] = {
    {"container_cpu_usage_seconds_total", take_cpu},
    {"container_memory_working_set_bytes", take_memory},
    {"container_gpu_memory_bytes", take_gpu_memory},
    {"container_gpu_utilization_ratio", take_gpu_share},
    {"gpu_utilization_ratio", take_gpu},
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
            families[index].take(in, &page->samples[i]);
        }
    }
}

/* ---- writing ---- */

struct emitter {
    int64_t wall_ns;
    waggle_emit_function *emit;
    void *context;
    struct buf json;
};

static void put_text(struct buf *out, const char *key, const char *text) {
    if (text[0] != '\0') {
        json_put_string(out, key, text);
    }
}

static void emit_message(struct emitter *out, const struct usage *usage, const char *name,
                         double value) {
    struct buf *json = &out->json;
    buf_reset(json);
    json_open(json, NULL, '{');
    json_put_string(json, "name", name);
    json_put(json, "ts", "%" PRId64, out->wall_ns);
    json_open(json, "meta", '{');
    put_text(json, "job", usage->job);
    put_text(json, "plugin", usage->image);
    put_text(json, "task", usage->task);
    json_close(json, '}');
    json_put_number(json, "val", value);
    json_close(json, '}');
    out->emit(out->context, name, json);
}

static const struct past *find_past(const struct waggle *waggle, const char *id) {
    for (size_t i = 0; i < waggle->n_past; i++) {
        if (strcmp(waggle->past[i].id, id) == 0) {
            return &waggle->past[i];
        }
    }
    return NULL;
}

/* Unknown on the first page, and after a counter has restarted. */
static double cpu_percent(const struct past *past, const struct usage *usage, int64_t now_ns) {
    if (past == NULL || now_ns <= past->ns || usage->cpu_seconds < past->cpu_seconds) {
        return NAN;
    }
    return (usage->cpu_seconds - past->cpu_seconds) / ((double)(now_ns - past->ns) / 1e9) * 100;
}

static double gpu_percent(const struct reading *in, const struct usage *usage) {
    if (!isnan(usage->gpu_ratio)) {
        return usage->gpu_ratio * 100;
    }
    return usage->has_gpu_memory || !in->has_gpu_memory ? in->gpu_ratio * 100 : NAN;
}

static void emit_usage(struct emitter *out, const struct waggle *waggle, const struct reading *in,
                       const struct usage *usage, int64_t now_ns) {
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"sys.plugin.perf.cpu", cpu_percent(find_past(waggle, usage->id), usage, now_ns)},
        {"sys.plugin.perf.gpu", gpu_percent(in, usage)},
        {"sys.plugin.perf.mem", usage->memory_bytes},
    };
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        if (!isnan(figures[i].value)) {
            emit_message(out, usage, figures[i].name, figures[i].value);
        }
    }
}

/* ---- one page ---- */

static void remember(struct waggle *waggle, const struct reading *in, int64_t now_ns) {
    free_past(waggle->past, waggle->n_past);
    waggle->past = mem_zalloc(in->n_usages, sizeof(*waggle->past));
    waggle->n_past = in->n_usages;
    for (size_t i = 0; i < in->n_usages; i++) {
        waggle->past[i] = (struct past){.id = mem_strdup(in->usages[i].id),
                                        .cpu_seconds = in->usages[i].cpu_seconds,
                                        .ns = now_ns};
    }
}

void waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                 int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context) {
    struct usage *usages CLEANUP_FREE = mem_zalloc(page->n_samples, sizeof(*usages));
    struct reading in = {.page = page, .namespace = namespace, .usages = usages, .gpu_ratio = NAN};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        take_family(&in, i);
    }
    struct emitter out = {.wall_ns = wall_ns, .emit = emit, .context = context};
    for (size_t i = 0; i < in.n_usages; i++) {
        emit_usage(&out, waggle, &in, &usages[i], monotonic_ns);
    }
    buf_finish(&out.json);
    remember(waggle, &in, monotonic_ns);
}

/* ---- files ---- */

/* If the agent does not collect the files, they must not fill the memory that /run is in. */
enum { MAX_FILES = 3000, STOP_MS = 3000 };

struct control_waggle {
    const struct control_config *config;
    struct loop *loop;
    struct web_client *exporter;
    struct waggle *waggle;
    char *place; /* our folder in the directory */
    struct worker *worker;
    struct worker_job job;
    struct loop_timer timer;
    bool is_running;
    bool is_failing; /* it has been logged */

    /* of the round under way */
    int64_t wall_ns;
    int dir_fd;
    size_t n_files, n_written;
    int code;
    struct error error;
};

/* ---- files ---- */

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

static void emit(void *context, const char *name, const struct buf *json) {
    struct control_waggle *waggle = context;
    if (waggle->code < 0) {
        return;
    }
    if (waggle->n_files >= MAX_FILES) {
        waggle->code = error_set(&waggle->error, -ENOSPC,
                                 "%s: %d files wait for wes-metrics-agent; no more are written",
                                 waggle->place, MAX_FILES);
        return;
    }
    struct buf file CLEANUP_BUF = {0};
    buf_printf(&file, "%" PRId64 "-%zu-%s", waggle->wall_ns, waggle->n_written, name);
    int r = write_file(waggle->dir_fd, buf_str(&file), json);
    if (r < 0) {
        waggle->code =
            error_set(&waggle->error, r, "%s/%s: %s", waggle->place, buf_str(&file), strerror(-r));
        return;
    }
    waggle->n_files++;
    waggle->n_written++;
}

static int open_place(struct control_waggle *waggle, struct error *err) {
    if (mkdir(waggle->place, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "create %s: %m", waggle->place);
    }
    DIR *directory = opendir(waggle->place);
    if (directory == NULL) {
        return error_set(err, -errno, "open %s: %m", waggle->place);
    }
    const struct dirent *entry;
    waggle->n_files = 0;
    while ((entry = readdir(directory)) != NULL) {
        waggle->n_files += entry->d_name[0] != '.';
    }
    waggle->dir_fd = fcntl(dirfd(directory), F_DUPFD_CLOEXEC, 0);
    closedir(directory);
    return waggle->dir_fd < 0 ? error_set(err, -errno, "open %s: %m", waggle->place) : 0;
}

int control_waggle_run(struct control_waggle *waggle, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    struct exposition_doc page CLEANUP_EXPOSITION_DOC = {0};
    int r = control_page_read(waggle->config, waggle->exporter, &text, &page, err);
    if (r == 0) {
        r = open_place(waggle, err);
    }
    if (r < 0) {
        return r;
    }
    waggle->wall_ns = (int64_t)(clock_wall_seconds() * 1e9);
    waggle->n_written = 0;
    waggle->code = 0;
    waggle_take(waggle->waggle, &page, waggle->config->waggle.namespace, waggle->wall_ns,
                clock_monotonic_ns(), emit, waggle);
    close(waggle->dir_fd);
    if (waggle->code < 0) {
        *err = waggle->error;
        return waggle->code;
    }
    return (int)waggle->n_written;
}

/* ---- on the loop ---- */

static void round_run(struct worker_job *job) {
    struct control_waggle *waggle = CONTAINER_OF(job, struct control_waggle, job);
    struct error err;
    int r = control_waggle_run(waggle, &err);
    waggle->code = r < 0 ? r : 0;
    if (r < 0) {
        waggle->error = err;
    }
}

static void round_done(struct worker_job *job) {
    struct control_waggle *waggle = CONTAINER_OF(job, struct control_waggle, job);
    bool failed = waggle->code < 0;
    waggle->is_running = false;
    if (failed && !waggle->is_failing) {
        log_warn("control: waggle: %s", waggle->error.text);
    } else if (!failed && waggle->is_failing) {
        log_info("control: waggle: writing again");
    }
    waggle->is_failing = failed;
}

static void timer_fire(struct loop_timer *timer) {
    struct control_waggle *waggle = CONTAINER_OF(timer, struct control_waggle, timer);
    timer->due_ns = clock_monotonic_ns() + waggle->config->waggle.interval_ms * CLOCK_NS_PER_MS;
    if (!waggle->is_running) {
        waggle->is_running = true;
        waggle->job = (struct worker_job){.run = round_run, .done = round_done};
        worker_submit(waggle->worker, &waggle->job);
    }
}

int control_waggle_create(struct loop *loop, const struct control_config *config,
                          struct control_waggle **ret_waggle, struct error *err) {
    struct control_waggle *waggle = mem_zalloc(1, sizeof(*waggle));
    waggle->config = config;
    waggle->loop = loop;
    waggle->waggle = waggle_create();
    waggle->place = file_path_join(config->waggle.directory, "waap");
    int r = web_client_create(&config->exporter, &waggle->exporter, err);
    r = r < 0 ? r : worker_create(loop, "waggle", &waggle->worker, err);
    waggle->timer = (struct loop_timer){.due_ns = clock_monotonic_ns(), .fire = timer_fire};
    loop_timer_add(loop, &waggle->timer);
    if (r < 0) {
        control_waggle_destroy(waggle);
        return r;
    }
    *ret_waggle = waggle;
    return 0;
}

bool control_waggle_destroy(struct control_waggle *waggle) {
    if (waggle == NULL) {
        return true;
    }
    if (waggle->exporter != NULL) {
        web_client_abort(waggle->exporter);
    }
    if (!worker_destroy(waggle->worker, STOP_MS)) {
        return false;
    }
    loop_cancel(waggle->loop, &waggle->job.message);
    loop_timer_remove(waggle->loop, &waggle->timer);
    web_client_destroy(waggle->exporter);
    waggle_destroy(waggle->waggle);
    free(waggle->place);
    free(waggle);
    return true;
}

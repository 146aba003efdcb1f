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

/* What can fail in a round while the rest of it goes on. */
enum { PART_EXPORTER, PART_QUERIES, PART_FILES, PART_BROKER, N_PARTS };

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
    struct web_client *exporter, *prometheus;
    struct amqp_link *link; /* NULL: not connected */
    char *place;            /* our folder in the directory; NULL: no files */
    struct part {
        int code; /* of the last round */
        struct error error;
        bool is_failing; /* it has been logged */
    } parts[N_PARTS];
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
        web_client_destroy(waggle->prometheus);
        amqp_link_close(waggle->link);
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
    if (text != NULL && text[0] != '\0') {
        json_put_string(out, key, text);
    }
}

static void begin_message(struct buf *json, const char *name, int64_t wall_ns) {
    json_open(json, NULL, '{');
    json_put_string(json, "name", name);
    json_put(json, "ts", "%" PRId64, wall_ns);
    json_open(json, "meta", '{');
}

static void end_message(struct buf *json, double value) {
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

void waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                 int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context) {
    struct usage *usages CLEANUP_FREE = mem_zalloc(page->n_samples, sizeof(*usages));
    struct reading in = {.page = page, .namespace = namespace, .usages = usages, .gpu_ratio = NAN};
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
        for (size_t k = 0; k < ARRAY_LEN(figures); k++) {
            struct buf json CLEANUP_BUF = {0};
            if (!isnan(figures[k].value)) {
                begin_message(&json, figures[k].name, wall_ns);
                put_text(&json, "job", usages[i].job);
                put_text(&json, "plugin", usages[i].image);
                put_text(&json, "task", usages[i].task);
                end_message(&json, figures[k].value);
                emit(context, figures[k].name, &json);
            }
        }
    }
    remember(waggle, &in, monotonic_ns);
}

/* ---- answers ---- */

static size_t n_characters(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return n;
}

static int write_labels(struct buf *json, const struct promql_series *series, struct error *err) {
    for (size_t i = 0; i < series->n_labels; i++) {
        const struct label *label = &series->labels[i];
        if (n_characters(label->name) > WAGGLE_MAX_NAME ||
            n_characters(label->value) > WAGGLE_MAX_VALUE) {
            return error_set(err, -EINVAL, "label %.64s: longer than Waggle takes", label->name);
        }
        if (strcmp(label->name, "__name__") != 0) {
            put_text(json, label->name, label->value);
        }
    }
    if (promql_series_label(series, "task") == NULL) {
        put_text(json, "task", promql_series_label(series, "plugin"));
    }
    return 0;
}

int waggle_take_answer(const char *name, const struct promql_answer *answer, int64_t wall_ns,
                       waggle_emit_function *emit, void *context, struct error *err) {
    int code = 0;
    for (size_t i = 0; i < answer->n_series; i++) {
        const struct promql_series *series = &answer->series[i];
        struct buf json CLEANUP_BUF = {0};
        if (!isfinite(series->value)) {
            continue;
        }
        begin_message(&json, name, wall_ns);
        int r = write_labels(&json, series, err);
        end_message(&json, series->value);
        if (r == 0) {
            emit(context, name, &json);
        }
        code = code < 0 ? code : r;
    }
    return code;
}

/* ---- files ---- */

/* If the agent does not collect the files, they must not fill the memory that /run is in. Plugins
 * choose how many samples a query has. */
enum { MAX_FILES = 3000, MAX_SAMPLES = 1000 };

/* One round. */
struct round {
    struct waggle *waggle;
    DIR *directory; /* NULL: no files */
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

static int add_file(struct round *round, const char *name, const struct buf *json,
                    struct error *err) {
    const char *place = round->waggle->place;
    if (round->n_files >= MAX_FILES) {
        return error_set(err, -ENOSPC,
                         "%s: %d files wait for wes-metrics-agent; no more are written", place,
                         MAX_FILES);
    }
    struct buf file CLEANUP_BUF = {0};
    buf_printf(&file, "%" PRId64 "-%zu-%s", round->wall_ns, round->n_written, name);
    int r = write_file(dirfd(round->directory), buf_str(&file), json);
    round->n_files++;
    round->n_written++;
    return r < 0 ? error_set(err, r, "%s/%s: %s", place, buf_str(&file), strerror(-r)) : 0;
}

static int open_place(struct round *round, struct error *err) {
    const char *place = round->waggle->place;
    const struct dirent *entry;
    if (mkdir(place, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "create %s: %m", place);
    }
    round->directory = opendir(place);
    if (round->directory == NULL) {
        return error_set(err, -errno, "open %s: %m", place);
    }
    while ((entry = readdir(round->directory)) != NULL) {
        round->n_files += entry->d_name[0] != '.';
    }
    return 0;
}

/* ---- rounds ---- */

static void emit(void *context, const char *name, const struct buf *json) {
    struct round *round = context;
    struct waggle *waggle = round->waggle;
    struct part *files = &waggle->parts[PART_FILES], *broker = &waggle->parts[PART_BROKER];
    if (round->directory != NULL && files->code == 0) {
        files->code = add_file(round, name, json, &files->error);
    }
    if (waggle->link != NULL && broker->code == 0) {
        broker->code = amqp_link_send(waggle->link, json->data, json->len, &broker->error);
    }
}

/* A connection that the broker has closed since the last round is replaced. */
static int open_link(struct waggle *waggle, struct error *err) {
    if (waggle->link != NULL && amqp_link_commit(waggle->link, err) < 0) {
        amqp_link_close(TAKE(waggle->link));
    }
    return waggle->link != NULL ? 0
                                : amqp_link_open(&waggle->config->waggle.amqp, &waggle->link, err);
}

static void close_link(struct waggle *waggle) {
    struct part *broker = &waggle->parts[PART_BROKER];
    if (waggle->link != NULL && broker->code == 0) {
        broker->code = amqp_link_commit(waggle->link, &broker->error);
    }
    if (broker->code < 0 || waggle->config->waggle.interval_ms >= AMQP_LINK_IDLE_S * 1000) {
        amqp_link_close(TAKE(waggle->link));
    }
}

static int take_page(struct round *round, struct error *err) {
    struct waggle *waggle = round->waggle;
    struct control_page page CLEANUP_CONTROL_PAGE = {0};
    int r = control_page_read(waggle->config, waggle->exporter, &page, err);
    if (r == 0) {
        waggle_take(waggle, &page.doc, waggle->config->waggle.namespace, round->wall_ns,
                    clock_monotonic_ns(), emit, round);
    }
    return r;
}

static int take_query(struct round *round, const struct control_message *message,
                      struct error *err) {
    struct promql_answer answer CLEANUP_PROMQL_ANSWER = {0};
    int r = promql_query(round->waggle->prometheus, message->query, &answer, err);
    if (r == 0 && answer.kind != PROMQL_VECTOR && answer.kind != PROMQL_SCALAR) {
        r = error_set(err, -EBADMSG, "the answer is a %s, not a vector",
                      promql_kind_name(answer.kind));
    } else if (r == 0 && answer.n_series > MAX_SAMPLES) {
        r = error_set(err, -E2BIG, "the answer has %zu samples, more than %d", answer.n_series,
                      MAX_SAMPLES);
    }
    r = r < 0 ? r : waggle_take_answer(message->name, &answer, round->wall_ns, emit, round, err);
    return r < 0 ? error_set(err, r, "%s: %s", message->name, err->text) : 0;
}

static void round_run(struct service_task *task) {
    struct waggle *waggle = CONTAINER_OF(task, struct waggle, task);
    const struct control_config *config = waggle->config;
    struct part *parts = waggle->parts;
    struct round round = {.waggle = waggle, .wall_ns = (int64_t)(clock_wall_seconds() * 1e9)};
    for (size_t i = 0; i < N_PARTS; i++) {
        parts[i].code = 0;
    }
    if (waggle->place != NULL) {
        parts[PART_FILES].code = open_place(&round, &parts[PART_FILES].error);
    }
    if (config->waggle.amqp.host != NULL) {
        parts[PART_BROKER].code = open_link(waggle, &parts[PART_BROKER].error);
    }
    parts[PART_EXPORTER].code = take_page(&round, &parts[PART_EXPORTER].error);
    for (size_t i = 0; i < config->waggle.n_messages; i++) {
        struct error err;
        int r = take_query(&round, &config->waggle.messages[i], &err);
        if (r < 0 && parts[PART_QUERIES].code == 0) {
            parts[PART_QUERIES] = (struct part){r, err, parts[PART_QUERIES].is_failing};
        }
    }
    close_link(waggle);
    if (round.directory != NULL) {
        closedir(round.directory);
    }
}

/* ---- the service ---- */

static void round_done(struct service_task *task) {
    static const char *const again[N_PARTS] = {
        [PART_EXPORTER] = "reading the exporter's page again",
        [PART_QUERIES] = "all queries answered again",
        [PART_FILES] = "writing again",
        [PART_BROKER] = "sending to the AMQP broker again",
    };
    struct waggle *waggle = CONTAINER_OF(task, struct waggle, task);
    for (size_t i = 0; i < N_PARTS; i++) {
        struct part *part = &waggle->parts[i];
        bool failed = part->code < 0;
        if (failed && !part->is_failing) {
            log_warn("control: waggle: %s", part->error.text);
        } else if (!failed && part->is_failing) {
            log_info("control: waggle: %s", again[i]);
        }
        part->is_failing = failed;
    }
}

int waggle_start(struct waggle *waggle, struct loop *loop, const struct control_config *config,
                 struct error *err) {
    waggle->config = config;
    if (config->waggle.directory != NULL) {
        waggle->place = file_path_join(config->waggle.directory, "waap");
    }
    waggle->task = (struct service_task){
        .run = round_run, .done = round_done, .interval_ms = config->waggle.interval_ms};
    int r = web_client_create(&config->exporter, &waggle->exporter, err);
    if (r == 0 && config->waggle.n_messages > 0) {
        r = web_client_create(&config->prometheus, &waggle->prometheus, err);
    }
    return r < 0 ? r : service_task_start(&waggle->task, loop, "waggle", err);
}

bool waggle_stop(struct waggle *waggle) {
    struct web_client *const clients[] = {waggle->exporter, waggle->prometheus};
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        if (clients[i] != NULL) {
            web_client_abort(clients[i]);
        }
    }
    return service_task_stop(&waggle->task);
}

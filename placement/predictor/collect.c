#include "placement/predictor/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/source/procfs.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/flags.h"
#include "placement/onnx/model.h"
#include "placement/predictor/predictor.h"

/* ---- load ---- */

/* One round of work and sleep: shorter than any run of a model. */
enum { ROUND_MS = 20 };

static void sleep_ns(int64_t ns) {
    struct timespec time = {ns / CLOCK_NS_PER_SEC, ns % CLOCK_NS_PER_SEC};
    while (nanosleep(&time, &time) < 0 && errno == EINTR) {
    }
}

static _Noreturn void burn(double percent, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0);
    }
    int64_t busy_ns = (int64_t)(percent / 100 * ROUND_MS * CLOCK_NS_PER_MS);
    for (;;) {
        int64_t start_ns = clock_monotonic_ns();
        while (clock_monotonic_ns() - start_ns < busy_ns) {
        }
        sleep_ns(ROUND_MS * CLOCK_NS_PER_MS - busy_ns);
    }
}

int burner_start(struct burner *burner, double percent, struct error *err) {
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *burner = (struct burner){.n_children = 0};
    if (percent <= 0) {
        return 0;
    }
    burner->children = mem_zalloc((size_t)(n_cpus > 0 ? n_cpus : 1), sizeof(*burner->children));
    pid_t parent = getpid();
    for (long i = 0; i < n_cpus; i++) {
        pid_t child = fork();
        if (child < 0) {
            int r = error_set(err, -errno, "fork: %m");
            burner_stop(burner);
            return r;
        }
        if (child == 0) {
            burn(percent < 100 ? percent : 100, parent);
        }
        burner->children[burner->n_children++] = child;
    }
    return 0;
}

void burner_stop(struct burner *burner) {
    for (size_t i = 0; i < burner->n_children; i++) {
        kill(burner->children[i], SIGKILL);
        waitpid(burner->children[i], NULL, 0);
    }
    free(burner->children);
    *burner = (struct burner){.n_children = 0};
}

/* All and idle ticks of the first line of /proc/stat, "cpu  1266 0 1180 85363 …": its columns are
 * those of the others. */
static int read_ticks(uint64_t *ret_all, uint64_t *ret_idle, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read("/proc/stat", &text, err);
    if (r < 0) {
        return r;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    struct buf line CLEANUP_BUF = {0};
    struct cpu_stat_line stat;
    buf_printf(&line, "cpu0%s", strncmp(text.data, "cpu ", 4) == 0 ? text.data + 4 : "");
    if (cpu_stat_parse(buf_str(&line), &stat) < 0) {
        return error_set(err, -EINVAL, "/proc/stat: no line of all CPUs");
    }
    *ret_all = 0;
    for (size_t i = 0; i < stat.n_modes && i <= CPU_STAT_STEAL; i++) {
        *ret_all += stat.ticks[i];
    }
    *ret_idle = stat.ticks[CPU_STAT_IDLE];
    return 0;
}

int burner_measure(double seconds, double *ret_percent, struct error *err) {
    uint64_t all[2], idle[2];
    int r = read_ticks(&all[0], &idle[0], err);
    if (r < 0) {
        return r;
    }
    sleep_ns((int64_t)(seconds * 1e9));
    r = read_ticks(&all[1], &idle[1], err);
    if (r < 0) {
        return r;
    }
    if (all[1] <= all[0] || idle[1] < idle[0]) {
        return error_set(err, -ENODATA, "/proc/stat: no time has passed");
    }
    *ret_percent = 100 * (1 - (double)(idle[1] - idle[0]) / (double)(all[1] - all[0]));
    return 0;
}

/* ---- the command ---- */

enum { EXIT_USAGE = 2, MAX_COMMAND = 250, MAX_FILE = 64 << 20 };

static const struct option options[] = {
    {"device", OPTION_STRING,
     .help = "Kind of this device: raspberrypi, jetson or desktop; default by its own name"},
    {"input-size", OPTION_SIZE, .default_text = "0", .max = INT64_MAX,
     .help = "What the application reads; default is the size of the model's inputs"},
    {"model", OPTION_STRING, .help = "The ONNX file that the application uses"},
    {"name", OPTION_STRING, .help = "Name of the model; default is that of its file"},
    {"out", OPTION_STRING, .help = "CSV file to append to"},
    {"output-size", OPTION_SIZE, .default_text = "0", .max = INT64_MAX,
     .help = "What it writes; default is the size of the model's outputs"},
    {"records", OPTION_STRING,
     .help = "Folder for the records of waap run; default is a new one in /tmp"},
    {"runs", OPTION_INT, .default_text = "20", .min = 1, .max = 10000,
     .help = "How often to run it, under loads from 0 to 100 percent"},
    {"settle", OPTION_DURATION, .default_text = "10s", .min = 100, .max = 600000,
     .help = "How long a load is on, and measured, before each run"},
    {0},
};

struct collect {
    struct flags flags;
    struct onnx_traits traits;
    int64_t input_bytes, output_bytes;
    struct buf name, device, records;
    FILE *out;
};

static const char usage[] =
    "usage: waap place collect --model=FILE.onnx --out=RUNS.csv [flags] -- COMMAND...\n\n"
    "Runs an application again and again while the CPUs are kept busy to different degrees,\n"
    "and appends how long it took to a file for waap place train. The load that is noted is\n"
    "what was measured just before the run, other work on the node included.\n\n";

static void add_device(struct buf *out, const char *given) {
    static const char *const names[] = {"desktop", "raspberrypi", "jetson"};
    struct buf board CLEANUP_BUF = {0};
    if (given[0] == '\0' && file_read("/proc/device-tree/model", &board, NULL) == 0) {
        given = buf_str(&board);
    }
    buf_add_str(out, names[device_of(given) - DEVICE_OTHER]);
}

static int64_t size_or(const struct settings *settings, const char *flag, int64_t known) {
    return settings_origin(settings, flag) != SETTINGS_DEFAULT ? settings_int(settings, flag)
                                                               : known;
}

static int read_model(struct collect *collect, struct error *err) {
    const struct settings *settings = collect->flags.settings;
    const char *path = settings_string(settings, "model");
    struct onnx_model model CLEANUP_ONNX_FILE = {0};
    int r = onnx_file_open(path, &model, err);
    r = r < 0 ? r : onnx_traits_get(&model, &collect->traits, err);
    if (r < 0) {
        return r;
    }
    collect->input_bytes = size_or(settings, "input-size", collect->traits.input_bytes);
    collect->output_bytes = size_or(settings, "output-size", collect->traits.output_bytes);
    if (collect->input_bytes < 0 || collect->output_bytes < 0) {
        return error_set(err, -EINVAL, "%s: an open dimension: set --input-size and --output-size",
                         path);
    }
    const char *name = settings_string(settings, "name");
    onnx_model_name(name[0] != '\0' ? name : path, &collect->name);
    for (char *at = collect->name.data; at != NULL && *at != '\0'; at++) {
        *at = strchr(",\"\r\n", *at) != NULL ? '_' : *at;
    }
    add_device(&collect->device, settings_string(settings, "device"));
    return 0;
}

/* An existing file must have the same columns. */
static int open_out(struct collect *collect, struct error *err) {
    const char *path = settings_string(collect->flags.settings, "out");
    collect->out = fopen(path, "a+e");
    if (collect->out == NULL) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    char line[512] = "";
    rewind(collect->out);
    size_t len = fread(line, 1, strlen(run_header), collect->out);
    if (len > 0 && strcmp(line, run_header) != 0) {
        return error_set(err, -EINVAL, "%s: has other columns", path);
    }
    fseek(collect->out, 0, SEEK_END);
    if (len == 0 && fputs(run_header, collect->out) == EOF) {
        return error_set(err, -errno, "write %s: %m", path);
    }
    return 0;
}

static int prepare(struct collect *collect, struct error *err) {
    const char *records = settings_string(collect->flags.settings, "records");
    int r = read_model(collect, err);
    r = r < 0 ? r : open_out(collect, err);
    if (r < 0) {
        return r;
    }
    buf_add_str(&collect->records, records[0] != '\0' ? records : "/tmp/waap-collect-XXXXXX");
    if (records[0] == '\0' && mkdtemp(collect->records.data) == NULL) {
        return error_set(err, -errno, "make %s: %m", buf_str(&collect->records));
    }
    return 0;
}

/* ---- one run ---- */

/* `waap run --force --out=DIR -- COMMAND...`; what it prints goes to standard error. */
static int run_command(const struct collect *collect, const char *dir, struct error *err) {
    const char *program = getenv("WAAP_PROGRAM");
    char *argv[MAX_COMMAND + 6] = {"waap", "run", "--force", (char *)dir, "--"};
    int argc = 5;
    for (size_t i = 0; i < collect->flags.n_words; i++) {
        argv[argc++] = (char *)collect->flags.words[i];
    }
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        return error_set(err, -errno, "fork: %m");
    }
    if (child == 0) {
        /* A signal that ends us ends the application too. */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(program != NULL ? program : "waap", argv);
        perror("waap place collect: waap run");
        _exit(EXIT_FAILURE);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return error_set(err, -ECHILD, "the application failed: see %s", strchr(dir, '=') + 1);
    }
    return 0;
}

static int read_seconds(const char *dir, double *ret_seconds, struct error *err) {
    struct buf path CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    buf_printf(&path, "%s/summary.json", dir);
    int r = file_read_stored(buf_str(&path), MAX_FILE, &text, err);
    if (r < 0) {
        return r;
    }
    json_t *root = json_loadb(buf_str(&text), text.len, 0, NULL);
    json_t *target = json_array_get(json_object_get(root, "targets"), 0);
    json_t *run = json_array_get(json_object_get(target, "runs"), 0);
    double seconds = json_number_value(json_object_get(run, "wall_seconds"));
    json_decref(root);
    if (!(seconds > 0)) {
        return error_set(err, -EINVAL, "%s: no wall_seconds of a run", buf_str(&path));
    }
    *ret_seconds = seconds;
    return 0;
}

static double disk_percent(void) {
    struct statvfs disk;
    return statvfs("/", &disk) == 0 && disk.f_blocks > 0
               ? 100 * (1 - (double)disk.f_bavail / (double)disk.f_blocks)
               : 0;
}

static int run_one(struct collect *collect, unsigned number, double wanted, struct error *err) {
    struct burner burner CLEANUP_BURNER = {0};
    struct buf dir CLEANUP_BUF = {0};
    double load = 0, seconds = 0;
    double settle = (double)settings_duration_ms(collect->flags.settings, "settle") / 1e3;
    buf_printf(&dir, "--out=%s/%s-%u", buf_str(&collect->records), buf_str(&collect->name), number);
    int r = burner_start(&burner, wanted, err);
    r = r < 0 ? r : burner_measure(settle, &load, err);
    r = r < 0 ? r : run_command(collect, buf_str(&dir), err);
    r = r < 0 ? r : read_seconds(buf_str(&dir) + strlen("--out="), &seconds, err);
    if (r < 0) {
        return r;
    }
    const struct onnx_traits *traits = &collect->traits;
    const struct run run = {
        .model = buf_str(&collect->name),
        .device = buf_str(&collect->device),
        .conv_layers = traits->conv_layers,
        .filters = traits->filter_details,
        .fc_layers = traits->fc_layers,
        .pool_layers = traits->pool_layers,
        .parameters = traits->total_parameters,
        .read_bytes = collect->input_bytes,
        .write_bytes = collect->output_bytes,
        .disk_percent = disk_percent(),
        .load_percent = load,
        .seconds = seconds,
        .number = number,
    };
    struct buf line CLEANUP_BUF = {0};
    run_write(&run, &line);
    fputs(buf_str(&line), collect->out);
    if (fflush(collect->out) == EOF) {
        return error_set(err, -errno, "write %s: %m",
                         settings_string(collect->flags.settings, "out"));
    }
    printf("run %u: %.3f s under a load of %.1f %%\n", number, seconds, load);
    return 0;
}

static unsigned common_divisor(unsigned a, unsigned b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Loads from 0 to 100 percent in even steps, not in order: a drift must not look like load. */
static double load_of(unsigned run, unsigned n_runs) {
    unsigned stride = 7;
    while (common_divisor(stride, n_runs) != 1) {
        stride++;
    }
    return n_runs > 1 ? 100.0 * (run * stride % n_runs) / (n_runs - 1) : 0;
}

static int run_all(struct collect *collect) {
    struct error err = {0};
    unsigned n_runs = (unsigned)settings_int(collect->flags.settings, "runs");
    int r = prepare(collect, &err);
    for (unsigned i = 0; r == 0 && i < n_runs; i++) {
        r = run_one(collect, i + 1, load_of(i, n_runs), &err);
    }
    if (r < 0) {
        fflush(stdout);
        fprintf(stderr, "waap place collect: %s\n", err.text);
        return EXIT_FAILURE;
    }
    printf("%s: %u runs of %s; records in %s\n", settings_string(collect->flags.settings, "out"),
           n_runs, buf_str(&collect->name), buf_str(&collect->records));
    return EXIT_SUCCESS;
}

static int check_flags(const struct flags *flags) {
    static const char *const needed[] = {"model", "out"};
    int code = -1;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        if (settings_string(flags->settings, needed[i])[0] == '\0') {
            fprintf(stderr, "place collect: --%s is missing\n", needed[i]);
            code = EXIT_USAGE;
        }
    }
    if (flags->n_words == 0 || flags->n_words > MAX_COMMAND) {
        fputs("place collect: expected -- and a command to run\n", stderr);
        code = EXIT_USAGE;
    }
    return code;
}

int collect_main(int argc, char **argv) {
    struct collect collect = {.out = NULL};
    int code = flags_begin(&collect.flags, usage, options, argc, argv);
    code = code < 0 ? check_flags(&collect.flags) : code;
    code = code < 0 ? run_all(&collect) : code;
    if (collect.out != NULL) {
        fclose(collect.out);
    }
    buf_finish(&collect.name);
    buf_finish(&collect.device);
    buf_finish(&collect.records);
    flags_finish(&collect.flags);
    return code;
}

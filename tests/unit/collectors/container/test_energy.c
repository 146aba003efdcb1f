#include "collectors/container/energy.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/container/container.h"
#include "collectors/source/energy.h"
#include "exporter/core/clock.h"
#include "exporter/demo/model.h"
#include "exporter/settings/settings.h"
#include "tests/unit/collectors/jetson/jetson_tree.h"
#include "tests/unit/snapshot_find.h"

/* Both collectors on the files of a board whose load we make, on a clock of our own. */

enum { MAX_CONTAINERS = 8, MAX_RAILS = 6, ID_LEN = 64 };

static const char name[] = "container_energy_estimate_joules_total";
static const char finished[] = "container_finished_energy_estimate_joules_total";

/* What a rail gives, from the watts at rest and those above that of CPUs and GPU. */
struct rail {
    const char *path; /* of the current */
    double volts;
    double rest, cpus, gpu;
};

static const struct board {
    const char *name;
    struct rail rails[MAX_RAILS];
} xavier_nx = {"xavier_nx_jp5",
               {{"sys/class/hwmon/hwmon3/curr1_input", 5.112, 1, 1, 1},
                {"sys/class/hwmon/hwmon3/curr2_input", 5.112, 0.3, 0.9, 0.9}}},
  agx_orin = {"agx_orin_jp5",
              {{"sys/class/hwmon/hwmon3/curr1_input", 20, 0.5, 0, 1},
               {"sys/class/hwmon/hwmon3/curr2_input", 20, 0.2, 1, 0},
               {"sys/class/hwmon/hwmon3/curr3_input", 5.04, 0.3, 0, 0}}},
  agx_xavier = {"agx_xavier_jp5",
                {{"sys/class/hwmon/hwmon4/curr1_input", 19.048, 0.2, 0, 1},
                 {"sys/class/hwmon/hwmon4/curr2_input", 19.048, 0.8, 1, 0},
                 {"sys/class/hwmon/hwmon4/curr3_input", 19.048, 0, 0, 0},
                 {"sys/class/hwmon/hwmon5/curr2_input", 19.048, 0, 0, 0},
                 {"sys/class/hwmon/hwmon5/curr3_input", 19.04, 0, 0, 0}}},
  thor = {"thor_jp7",
          {{"sys/class/hwmon/hwmon2/power1_input", 1e-3, 1, 1, 1}, /* microwatts, not a current */
           {"sys/class/hwmon/hwmon5/curr1_input", 19.6, 0.2, 0, 1}}};

static const struct board *board;
static struct settings *container_settings;
static struct collector_env container_env;
static struct energy *energy;
static void *containers;
static struct snapshot container_snapshot;
static char cgroupfs[80];
static int64_t now_ns;
static double cpu_seconds[MAX_CONTAINERS]; /* used by each */
static double machine_seconds;
static bool alive[MAX_CONTAINERS];
static bool without_b;

void setUp(void) {
    tree_begin();
    now_ns = 7000 * CLOCK_NS_PER_SEC;
    machine_seconds = 1000;
    memset(cpu_seconds, 0, sizeof(cpu_seconds));
    memset(alive, 0, sizeof(alive));
}

void tearDown(void) {
    container_collector.close(containers);
    containers = NULL;
    snapshot_finish(&container_snapshot);
    settings_destroy(container_settings);
    tree_end();
    energy_destroy(energy);
}

/* In place: a reader with the file open sees the change. */
static void write_text(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_text(const char *path, const char *format, ...) {
    struct buf text CLEANUP_BUF = {0};
    char whole[256];
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    snprintf(whole, sizeof(whole), "%s/%s", tree, path);
    int fd CLEANUP_CLOSE = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    TEST_ASSERT_TRUE_MESSAGE(fd >= 0, whole);
    TEST_ASSERT_EQUAL_INT((int)text.len, pwrite(fd, text.data, text.len, 0));
    TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, (off_t)text.len));
}

static const char *id_of(int i) {
    static char id[ID_LEN + 1];
    memset(id, 'a' + i, ID_LEN);
    return id;
}

static void write_cpu(int i) {
    if (!alive[i]) {
        return;
    }
    char path[128];
    snprintf(path, sizeof(path), "cgroup/docker/%s/cpu.stat", id_of(i));
    write_text(path, "usage_usec %.0f\nuser_usec 0\nsystem_usec 0\n", cpu_seconds[i] * 1e6);
}

static void start_container(int i) {
    run("mkdir -p %s/cgroup/docker/%s %s/proc/%d", tree, id_of(i), tree, 100 + i);
    alive[i] = true;
    write_cpu(i);
    char path[128];
    snprintf(path, sizeof(path), "cgroup/docker/%s/cgroup.procs", id_of(i));
    write_text(path, "%d\n", 100 + i);
    snprintf(path, sizeof(path), "proc/%d/cgroup", 100 + i);
    write_text(path, "0::/docker/%s\n", id_of(i));
}

static void end_container(int i) {
    run("rm -r %s/cgroup/docker/%s %s/proc/%d", tree, id_of(i), tree, 100 + i);
    cpu_seconds[i] = 0;
    alive[i] = false;
}

static void hold_gpu(bool a, bool b) {
    write_text("sys/kernel/debug/nvmap/iovmm/clients", "%s%stotal 64K\n",
               a ? "user a 100 32K\n" : "", b ? "user b 101 32K\n" : "");
}

static void open_containers(void) {
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *row = container_collector.options; row->name != NULL; row++) {
        options[n++] = row;
    }
    options[n++] = &sample_options[1];
    container_settings = settings_create(options, n);
    const struct option *exclude =
        settings_option(container_settings, "collector.container.exclude");
    settings_set(container_settings, exclude, 1, without_b ? "b+" : "", NULL);
    snprintf(cgroupfs, sizeof(cgroupfs), "%s/cgroup", tree);
    container_env = env;
    container_env.cgroupfs = cgroupfs;
    container_env.settings = container_settings;
    int r = container_collector.open(&container_env, &containers, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
}

static void set_power(double rest, double cpus, double gpu) {
    for (const struct rail *rail = board->rails; rail->path != NULL; rail++) {
        double watts = rest * rail->rest + cpus * rail->cpus + gpu * rail->gpu;
        write_text(rail->path, "%.0f\n", watts / rail->volts * 1e3);
    }
}

static void set_gpu_load(double load) {
    if (board == &thor) { /* its load is told by NVML */
        return;
    }
    const char *gpu = board == &agx_orin ? "17000000.ga10b" : "17000000.gv11b";
    char path[128];
    snprintf(path, sizeof(path), "sys/devices/%s/load", gpu);
    write_text(path, "%.0f\n", load * 1000);
}

static void write_machine(void) {
    write_text("proc/stat", "cpu  %.0f 0 0 900000 0 0 0 0 0 0\nbtime 1000\n",
               machine_seconds * (double)sysconf(_SC_CLK_TCK));
}

static void begin(const struct board *with, int n_containers) {
    board = with;
    energy = energy_create();
    env.energy = energy;
    plant_board(board->name);
    run("mkdir -p %s/cgroup %s/sys/kernel/debug/nvmap/iovmm", tree, tree);
    write_text("cgroup/cgroup.controllers", "cpu memory\n");
    for (int i = 0; i < n_containers; i++) {
        cpu_seconds[i] = 5000; /* before our time */
        start_container(i);
    }
    hold_gpu(false, false);
    set_power(3, 0, 0);
    set_gpu_load(0);
    write_machine();
    open_collector();
    open_containers();
}

static void sample(void) {
    now_ns += 100 * CLOCK_NS_PER_MS;
    jetson_sample_at(state, now_ns);
    TEST_ASSERT_EQUAL_INT(0, container_sample_at(containers, now_ns));
}

static void scrape(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_at(now_ns), err.text);
    snapshot_reset(&container_snapshot);
    int r = container_collect_at(containers, now_ns, &container_snapshot, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
}

static double sum(const char *family) {
    double total = 0;
    for (size_t i = 0; i < container_snapshot.n_families; i++) {
        const struct family *row = &container_snapshot.families[i];
        for (size_t j = 0; strcmp(row->desc->name, family) == 0 && j < row->n_samples; j++) {
            total += row->samples[j].value;
        }
    }
    return total;
}

static double measured(void) {
    const struct sample *sample = snapshot_find(&snapshot, "jetson_energy_joules_total", "");
    TEST_ASSERT_NOT_NULL(sample);
    return sample->value;
}

static double value(const char *labels) {
    const struct sample *sample = snapshot_find(&container_snapshot, name, labels);
    return sample != NULL ? sample->value : 0;
}

static double of_container(int i, const char *source) {
    char labels[256];
    snprintf(labels, sizeof(labels), "id=\"/docker/%s\",name=\"%.12s\",source=\"%s\"", id_of(i),
             id_of(i), source);
    return value(labels);
}

/* Two containers and the rest of the machine with so many CPUs each, a watt for each; the GPU takes
 * 8 W. */
static void work(double seconds, double a, double b, double others, double gpu) {
    set_power(3, a + b + others, 8 * gpu);
    set_gpu_load(gpu);
    for (int i = 0; i < (int)lround(seconds * 10); i++) {
        cpu_seconds[0] += a / 10;
        cpu_seconds[1] += b / 10;
        machine_seconds += (a + b + others) / 10;
        write_cpu(0);
        write_cpu(1);
        write_machine();
        sample();
    }
}

static void check_sum(void) {
    double all = sum(name) + sum(finished);
    TEST_ASSERT_DOUBLE_WITHIN(1e-6 * measured() + 1e-9, measured(), all);
}

static void check_near(double expected, double actual) {
    TEST_ASSERT_DOUBLE_WITHIN(0.03 * expected + 2, expected, actual);
}

static void test_without_rails_it_is_absent(void) {
    begin(&xavier_nx, 2);
    run("rm %s/sys/class/hwmon/hwmon3/name", tree);
    jetson_collector.close(state);
    open_collector();
    work(3, 1, 1, 0, 0);
    scrape();
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&container_snapshot, name));
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&container_snapshot, finished));
}

static void test_by_cpu_time(void) {
    begin(&xavier_nx, 2);
    work(10, 0, 0, 0, 0);
    work(40, 2, 1, 1, 0);
    scrape();
    check_sum();
    check_near(80, of_container(0, "cpu"));
    check_near(40, of_container(1, "cpu"));
    check_near(40, value("source=\"shared\""));
    check_near(150, value("source=\"idle\""));
}

/* The NX has one rail for both: what CPU time costs is learnt while the GPU rests. */
static void test_gpu_on_a_shared_rail(void) {
    begin(&xavier_nx, 2);
    hold_gpu(false, true);
    work(10, 0, 0, 0, 0);
    work(20, 1, 1, 0, 0);
    work(30, 2, 1, 0, 0.75);
    scrape();
    check_sum();
    check_near(20 + 60, of_container(0, "cpu"));
    check_near(20 + 30, of_container(1, "cpu"));
    check_near(180, of_container(1, "gpu"));
    TEST_ASSERT_EQUAL_DOUBLE(0, of_container(0, "gpu"));
}

static void test_gpu_rail_of_its_own(void) {
    begin(&agx_xavier, 2);
    hold_gpu(true, false);
    work(10, 0, 0, 0, 0);
    work(30, 1, 3, 0, 1);
    scrape();
    check_sum();
    check_near(30, of_container(0, "cpu"));
    check_near(90, of_container(1, "cpu"));
    check_near(240, of_container(0, "gpu"));
    check_near(0, value("source=\"shared\""));
    hold_gpu(true, true); /* whose it is cannot be told any more; noticed within five seconds */
    work(35, 0, 0, 0, 1);
    scrape();
    check_sum();
    TEST_ASSERT_DOUBLE_WITHIN(45, 240 + 20, of_container(0, "gpu"));
    TEST_ASSERT_DOUBLE_WITHIN(45, 240 + 20, value("source=\"shared\""));
}

/* Where NVML tells the load of each process, it counts, and not the memory. */
static void test_gpu_by_load_of_processes(void) {
    char library[256], scenario[96];
    const char *folder = getenv("WAAP_FAKES");
    snprintf(library, sizeof(library), "%s/libnvidia-ml.so.1",
             folder != NULL ? folder : "build/tests/fakes");
    snprintf(scenario, sizeof(scenario), "%s/scenario", tree);
    setenv("FAKE_NVML", scenario, 1);
    write_text("scenario", "gpus 1\n0.name NVIDIA Thor\n0.utilization 60 0\n"
                           "0.loads 100 30 101 10 7 40\n");
    set_option("collector.jetson.nvml", library);
    begin(&thor, 2);
    work(10, 0, 0, 0, 0);
    work(40, 1, 1, 0, 1);
    scrape();
    check_sum();
    check_near(40, of_container(0, "cpu"));
    check_near(120, of_container(0, "gpu"));
    check_near(40, of_container(1, "gpu"));
    check_near(160, value("source=\"shared\""));
}

/* A machine that is no Jetson, with a card that tells whose the load is. */
static void test_a_card(void) {
    begin(&xavier_nx, 2);
    jetson_collector.close(TAKE(state));
    struct energy_meter *card = energy_meter_open(energy, "GPU-1");
    for (int second = 0; second <= 30; second++) {
        double joules = 20 * second + (second > 10 ? 100 * (second - 10) : 0);
        char a[96];
        snprintf(a, sizeof(a), "/docker/%s", id_of(0));
        struct energy_share shares[] = {{a, 0.5}, {"/docker/gone", 0.25}};
        struct energy_reading reading = {
            .joules = joules, .seconds = second, .gpu_joules = joules, .gpu_busy_seconds = NAN};
        energy_meter_put(card, &reading, shares, second > 10 ? 2 : 0);
        now_ns += CLOCK_NS_PER_SEC;
        TEST_ASSERT_EQUAL_INT(0, container_sample_at(containers, now_ns));
    }
    snapshot_reset(&container_snapshot);
    container_collect_at(containers, now_ns, &container_snapshot, &err);
    TEST_ASSERT_DOUBLE_WITHIN(1e-6, 2600, sum(name));
    check_near(1000, of_container(0, "gpu"));
    check_near(1000, value("source=\"shared\""));
    check_near(600, value("source=\"idle\""));
    /* What CPUs took is not known, and not zero. */
    TEST_ASSERT_EQUAL_UINT64(3, snapshot_count(&container_snapshot, name));
    energy_meter_close(card);
}

static void test_what_is_left_out_is_shared(void) {
    without_b = true;
    begin(&agx_xavier, 2);
    without_b = false;
    work(5, 0, 0, 0, 0);
    work(20, 1, 1, 0, 0);
    scrape();
    check_sum();
    check_near(20, of_container(0, "cpu"));
    check_near(20, value("source=\"shared\""));
    TEST_ASSERT_EQUAL_UINT64(3, snapshot_count(&container_snapshot, name));
}

static void test_ends_and_is_not_lost(void) {
    begin(&agx_xavier, 2);
    work(5, 0, 0, 0, 0);
    work(20, 1, 1, 0, 0);
    scrape();
    double before = of_container(0, "cpu");
    check_near(20, before);
    end_container(0);
    work(0.2, 0, 1, 0, 0);
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(0, of_container(0, "cpu"));
    TEST_ASSERT_DOUBLE_WITHIN(0.5, before, sum(finished));
    check_sum();
}

/* What it used before we were there is not of this account. */
static void test_is_found_late(void) {
    begin(&agx_xavier, 2);
    work(5, 0, 0, 0, 0);
    work(5, 1, 0, 0, 0);
    cpu_seconds[2] = 5000;
    start_container(2);
    run("touch -d '1 hour ago' %s/cgroup/docker/%s", tree, id_of(2));
    work(5, 1, 0, 0, 0);
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(0, of_container(2, "cpu"));
    check_near(10, of_container(0, "cpu"));
}

/* Works for a moment and is gone, between two steps of the account, so that nobody but the kernel
 * saw it at work. */
static void live_shortly(int i) {
    sample();
    cpu_seconds[i] = 0.3;
    machine_seconds += 0.3;
    write_cpu(i);
    write_machine();
    set_power(3, 1, 0);
    sample();
    sample();
    run("rm -r %s/cgroup/docker/%s", tree, id_of(i));
    alive[i] = false;
    set_power(3, 0, 0);
    work(2, 0, 0, 0, 0);
    scrape();
    TEST_ASSERT_DOUBLE_WITHIN(0.15, 0.3, sum(finished));
    check_sum();
}

static void test_short_life(void) {
    begin(&agx_xavier, 2);
    work(5, 0, 0, 0, 0);
    work(10, 0, 1, 0, 0);
    start_container(2);
    live_shortly(2);
}

/* Made within the tick that we were opened in: the kernel's time stamp is older than the clock. */
static void test_short_life_that_begins_with_us(void) {
    char path[256];
    begin(&agx_xavier, 2);
    snprintf(path, sizeof(path), "%s/cgroup/docker/%s", tree, id_of(2));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, mkdir(path, 0755), path);
    alive[2] = true;
    write_cpu(2);
    work(5, 0, 0, 0, 0);
    work(10, 0, 1, 0, 0);
    live_shortly(2);
}

/* Loads at random, containers that come and go at random, scrapes at random: all of the series are
 * what was measured, and none falls. */
static void run_at_random(const struct board *with, unsigned seed) {
    static double last[MAX_CONTAINERS];
    struct demo_model model;
    double last_sum = 0;
    begin(with, 2);
    hold_gpu(seed % 2 == 0, seed % 3 == 0);
    demo_model_init(&model, seed);
    srand(seed);
    memset(last, 0, sizeof(last));
    for (int turn = 0; turn < 300; turn++) {
        demo_model_step(&model, 0.1);
        double watts = model.rail_watts[DEMO_RAIL_IN];
        set_gpu_load(model.gpu_load);
        set_power(watts / 3, watts / 3, watts / 3);
        for (int i = 0; i < MAX_CONTAINERS; i++) {
            if (rand() % 60 == 0) {
                alive[i] ? end_container(i) : start_container(i);
                last[i] = 0;
            }
            double used = alive[i] ? model.cpu_load[i % DEMO_N_CPUS] / 10 : 0;
            cpu_seconds[i] += used;
            machine_seconds += 1.1 * used;
            write_cpu(i);
        }
        write_machine();
        sample();
        if (rand() % 7 != 0) {
            continue;
        }
        scrape();
        double all = sum(name) + sum(finished);
        TEST_ASSERT_DOUBLE_WITHIN(0.01 * measured(), measured(), all);
        TEST_ASSERT_TRUE(all >= last_sum - 1e-9);
        last_sum = all;
        for (int i = 0; i < MAX_CONTAINERS; i++) {
            double joules = of_container(i, "cpu");
            TEST_ASSERT_TRUE(!alive[i] || joules >= last[i]);
            last[i] = joules;
        }
    }
    TEST_ASSERT_TRUE(measured() > 100);
}

static void test_the_sum_is_what_was_measured(void) {
    static const struct board *const boards[] = {&xavier_nx, &agx_orin, &agx_xavier};
    for (unsigned seed = 1; seed <= 6; seed++) {
        run_at_random(boards[seed % ARRAY_LEN(boards)], seed);
        if (seed < 6) {
            tearDown();
            setUp();
        }
    }
}

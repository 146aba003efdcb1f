#include "exporter/demo/demo.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/demo/nvml.h"
#include "exporter/demo/tree.h"
#include "exporter/loop/thread.h"

enum { TICK_MS = 100, MAX_STEP_MS = 2000, STOP_MS = 2000, WARM_UP_STEPS = 120 };

static const char *const notices[] = {
    [DEMO_JETSON] = "a simulated Jetson Xavier NX, nothing shown is real",
    [DEMO_DGPU] = "a simulated server with two graphics cards, nothing shown is real",
};

struct demo {
    enum demo_kind kind;
    struct demo_dir dir;
    struct demo_model model; /* used by the thread, as are the cards and the tree */
    struct demo_card cards[DEMO_N_CARDS];
    struct demo_tree *tree;
    pthread_t thread;
    bool started;
    atomic_bool stopping;
};

/* Settings that the demo overrides. */
static const struct {
    const char *option;
    const char *text;
    bool below; /* a path below the demo's directory */
} redirects[] = {
    {"collector.host.characterization", "true", false}, /* for `waap place` */
    {"collector.jetson.nvml", "off", false},
    {"collector.jetson.tegrastats", "off", false},        /* it would show the real machine, */
    {"collector.nvml.library", "/no-libnvidia-ml", true}, /* and so would this */
    {"path.cgroupfs", "/sys/fs/cgroup", true},
    {"path.procfs", "/proc", true},
    {"path.rootfs", "", true},
    {"path.sysfs", "/sys", true},
    {"push.state-file", "", false},
    {"push.table", "", false},
    {"web.disable-exporter-metrics", "false", false}, /* waap_demo is one of them */
};

/* One card runs the detector, the other a periodic job. */
static void step_cards(struct demo *demo, double seconds) {
    bool at_work = fmod(demo->model.uptime_seconds, 90) < 55;
    double job = demo_approach(demo->cards[1].demand, at_work ? 0.96 : 0, seconds, 1.5);
    demo_card_step(&demo->cards[0], 0.85 * demo->model.demand, seconds);
    demo_card_step(&demo->cards[1], job, seconds);
    demo_nvml_update(demo->cards);
}

static void write_tick(struct demo *demo, double seconds, bool *failing) {
    struct error err;
    demo_model_step(&demo->model, seconds);
    step_cards(demo, seconds);
    bool failed = demo_tree_update(demo->tree, &demo->model, &err) < 0;
    if (failed && !*failing) {
        log_warn("demo: %s", err.text);
    } else if (!failed && *failing) {
        log_info("demo: the simulated files can be written again");
    }
    *failing = failed;
}

static void *run(void *context) {
    struct demo *demo = context;
    static const struct timespec tick = {.tv_nsec = TICK_MS * CLOCK_NS_PER_MS};
    int64_t last_ns = clock_monotonic_ns();
    bool failing = false;
    while (!atomic_load(&demo->stopping)) {
        nanosleep(&tick, NULL);
        int64_t now_ns = clock_monotonic_ns();
        int64_t step_ns = now_ns - last_ns;
        /* A suspend does not count. */
        step_ns = step_ns < MAX_STEP_MS * CLOCK_NS_PER_MS ? step_ns : TICK_MS * CLOCK_NS_PER_MS;
        last_ns = now_ns;
        write_tick(demo, (double)step_ns / 1e9, &failing);
    }
    return NULL;
}

/* In memory if possible: the files change ten times a second. */
static int make_directory(struct demo_dir *dir, struct error *err) {
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp", NULL};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (places[i] != NULL && places[i][0] == '/') {
            places[n++] = places[i];
        }
    }
    places[n] = NULL;
    return demo_dir_init(dir, places, err);
}

static int start(struct demo *demo, struct error *err) {
    int r = make_directory(&demo->dir, err);
    if (r < 0) {
        return r;
    }
    demo_model_init(&demo->model, (uint64_t)clock_monotonic_ns());
    demo->model.board = demo->kind == DEMO_DGPU ? DEMO_BOARD_SERVER : DEMO_BOARD_XAVIER_NX;
    for (size_t i = 0; i < DEMO_N_CARDS; i++) {
        demo_card_init(&demo->cards[i], demo->model.random + i);
    }
    for (int i = 0; i < WARM_UP_STEPS; i++) {
        step_cards(demo, 1);
    }
    demo->model.boot_seconds = clock_wall_seconds() - demo->model.uptime_seconds;
    r = demo_tree_create(demo->dir.path, &demo->model, &demo->tree, err);
    if (r == 0) {
        r = thread_start(&demo->thread, "demo", run, demo, err);
        demo->started = r == 0;
    }
    return r;
}

int demo_create(const struct settings *settings, struct demo **ret_demo, struct error *err) {
    enum demo_kind kind = (enum demo_kind)settings_choice(settings, "demo");
    if (kind == DEMO_OFF) {
        *ret_demo = NULL;
        return 0;
    }
    struct demo *demo = mem_zalloc(1, sizeof(*demo));
    demo->kind = kind;
    int r = start(demo, err);
    if (r < 0) {
        demo_destroy(demo);
        return err != NULL ? error_set(err, r, "demo: %s", err->text) : r;
    }
    log_warn("demo: %s; its files are in %s", demo_notice(demo), demo->dir.path);
    *ret_demo = demo;
    return 0;
}

const char *demo_notice(const struct demo *demo) {
    return notices[demo->kind];
}

const struct nvml_library *demo_nvml(const struct demo *demo) {
    return demo != NULL && demo->kind == DEMO_DGPU ? &demo_nvml_library : NULL;
}

void demo_destroy(struct demo *demo) {
    if (demo == NULL) {
        return;
    }
    atomic_store(&demo->stopping, true);
    bool ended = !demo->started || thread_join(demo->thread, STOP_MS);
    demo_dir_finish(&demo->dir);
    if (ended) {
        demo_tree_destroy(demo->tree);
        free(demo);
    }
}

static int redirect(const struct demo *demo, struct settings *settings, size_t i,
                    struct error *err) {
    const struct option *option = settings_option(settings, redirects[i].option);
    if (option == NULL) {
        return 0;
    }
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s%s", redirects[i].below ? demo->dir.path : "", redirects[i].text);
    /* Like a flag, which overrides everything else. */
    return settings_set(settings, option, SETTINGS_FLAG, buf_str(&text), err);
}

int demo_redirect(const struct demo *demo, struct settings *settings, struct error *err) {
    enum demo_kind running = demo != NULL ? demo->kind : DEMO_OFF;
    if ((enum demo_kind)settings_choice(settings, "demo") != running) {
        return error_set(err, -EINVAL, "cannot be changed while waap runs");
    }
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(redirects) && r == 0 && demo != NULL; i++) {
        r = redirect(demo, settings, i, err);
    }
    return r;
}

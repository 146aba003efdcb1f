#include "exporter/demo/plugin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/session.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/json.h"
#include "exporter/core/memory.h"
#include "exporter/demo/container.h"

/* With the default number of lines the detector misses its target; with fewer it does not. */
enum { TICK_MS = 200, DEFAULT_LINES = 720, CAMERA_FPS = 30, TARGET_FPS = 25 };

static const double latency_bounds[] = {0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25};

enum { N_BOUNDS = ARRAY_LEN(latency_bounds) };

struct demo_plugins {
    struct loop *loop;
    struct loop_timer timer;
    struct push_session_env env;
    struct push_session detector, uploader;
    struct buf line;
    uint64_t random;
    int64_t last_ns;

    double lines; /* of a frame: the knob */
    double frames;
    uint64_t counts[N_BOUNDS + 1]; /* of latencies, not cumulative */
    double latency_sum;
    double uploads;
    double queue;
};

/* ---- speed of the detector ---- */

/* The seconds that it needs for a frame of so many lines. */
static double latency_of(double lines) {
    double scale = lines / DEFAULT_LINES;
    return 0.006 + 0.042 * scale * scale;
}

/* ---- messages to waap ---- */

static void send_line(struct demo_plugins *plugins, struct push_session *session) {
    push_session_line(session, plugins->line.data, plugins->line.len);
    buf_reset(&plugins->line);
}

/* A plugin has the name of its container. */
static void send_hello(struct demo_plugins *plugins, struct push_session *session,
                       enum demo_container_index container) {
    const char *name = demo_container_name(container);
    buf_printf(&plugins->line,
               "{\"hello\": {\"plugin\": \"%s\", \"job\": \"cars\", \"start\": \"demo\", "
               "\"container\": \"%s\", \"pod\": \"%s\", \"namespace\": \"ses\"}}",
               name, name, demo_container_pod(container));
    send_line(plugins, session);
}

static void send_greetings(struct demo_plugins *plugins) {
    send_hello(plugins, &plugins->detector, DEMO_DETECTOR);
    send_hello(plugins, &plugins->uploader, DEMO_UPLOADER);
    buf_printf(&plugins->line,
               "{\"param\": \"res\", \"type\": \"int\", \"default\": %d, \"min\": 240, "
               "\"max\": 1080, \"step\": 120, \"unit\": \"lines\", "
               "\"help\": \"Lines of the frames that are examined\"}",
               DEFAULT_LINES);
    send_line(plugins, &plugins->detector);
}

static void process_frame(struct demo_plugins *plugins) {
    double latency = latency_of(plugins->lines) * (1 + demo_noise(&plugins->random, 0.25));
    size_t i = 0;
    while (i < N_BOUNDS && latency > latency_bounds[i]) {
        i++;
    }
    plugins->counts[i]++;
    plugins->latency_sum += latency;
}

static void send_latencies(struct demo_plugins *plugins) {
    struct buf *line = &plugins->line;
    buf_add_str(line, "{\"metric\": \"inference_seconds\", \"type\": \"histogram\", "
                      "\"help\": \"Time per frame\", \"buckets\": [");
    for (size_t i = 0; i < N_BOUNDS; i++) {
        buf_printf(line, "%s%g", i > 0 ? ", " : "", latency_bounds[i]);
    }
    buf_add_str(line, "], \"total\": {\"counts\": [");
    uint64_t count = 0;
    for (size_t i = 0; i < N_BOUNDS; i++) {
        count += plugins->counts[i];
        buf_printf(line, "%s%" PRIu64, i > 0 ? ", " : "", count);
    }
    buf_printf(line, "], \"count\": %" PRIu64 ", \"sum\": %.9g}}",
               count + plugins->counts[N_BOUNDS], plugins->latency_sum);
    send_line(plugins, &plugins->detector);
}

static void work_detector(struct demo_plugins *plugins, double seconds) {
    uint64_t before = (uint64_t)plugins->frames;
    plugins->frames += seconds * fmin(CAMERA_FPS, 1 / latency_of(plugins->lines));
    for (uint64_t n = (uint64_t)plugins->frames - before; n > 0; n--) {
        process_frame(plugins);
    }
    buf_printf(&plugins->line,
               "{\"metric\": \"fps\", \"type\": \"rate\", \"help\": \"Frames examined\", "
               "\"total\": %.0f}",
               floor(plugins->frames));
    send_line(plugins, &plugins->detector);
    buf_printf(&plugins->line,
               "{\"metric\": \"fps_target\", \"type\": \"gauge\", "
               "\"help\": \"Target of frames per second\", \"set\": %d}",
               TARGET_FPS);
    send_line(plugins, &plugins->detector);
    send_latencies(plugins);
}

static void work_uploader(struct demo_plugins *plugins, double seconds) {
    plugins->queue = demo_clamp(plugins->queue + demo_noise(&plugins->random, 1.5), 0, 40);
    plugins->uploads += seconds * (0.5 + 0.1 * plugins->queue);
    buf_printf(&plugins->line,
               "{\"metric\": \"uploads_total\", \"type\": \"counter\", \"help\": \"Files sent\", "
               "\"total\": %.0f}",
               floor(plugins->uploads));
    send_line(plugins, &plugins->uploader);
    buf_printf(&plugins->line,
               "{\"metric\": \"upload_queue_length\", \"type\": \"gauge\", "
               "\"help\": \"Files that wait to be sent\", \"set\": %.0f}",
               floor(plugins->queue));
    send_line(plugins, &plugins->uploader);
}

/* ---- messages from waap ---- */

static int read_value(struct json *json, const char *key, void *ret_lines, struct error *err) {
    return strcmp(key, "value") == 0 ? json_read_number(json, ret_lines, err)
                                     : json_skip(json, err);
}

/* {"param": "res", "value": 480} */
static bool read_knob(char *text, size_t len, double *ret_lines) {
    struct json json = json_begin(text, len, 1);
    *ret_lines = NAN;
    return json_each(&json, '{', "a message", read_value, ret_lines, NULL) == 0 &&
           !isnan(*ret_lines);
}

static void receive(struct demo_plugins *plugins) {
    struct buf text CLEANUP_BUF = plugins->detector.out;
    plugins->detector.out = (struct buf){0};
    char *rest = text.data;
    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        double lines;
        if (read_knob(line, strlen(line), &lines)) {
            plugins->lines = lines;
            buf_printf(&plugins->line, "{\"param\": \"res\", \"applied\": %.0f}", lines);
            send_line(plugins, &plugins->detector);
        }
    }
    buf_reset(&plugins->uploader.out);
}

/* ---- life ---- */

static void fire(struct loop_timer *timer) {
    struct demo_plugins *plugins = CONTAINER_OF(timer, struct demo_plugins, timer);
    int64_t now_ns = clock_monotonic_ns();
    double seconds = (double)(now_ns - plugins->last_ns) / 1e9;
    plugins->last_ns = now_ns;
    seconds = fmin(seconds, 2); /* a suspend does not count */
    work_detector(plugins, seconds);
    work_uploader(plugins, seconds);
    receive(plugins);
    timer->due_ns = now_ns + TICK_MS * CLOCK_NS_PER_MS;
}

/* A knob was changed: the plugin reads it in the next turn of the loop. */
static void answered(struct push_session *session) {
    struct demo_plugins *plugins = CONTAINER_OF(session, struct demo_plugins, detector);
    plugins->timer.due_ns = 0;
}

static void ignore(struct push_session *session) {
    (void)session;
}

struct demo_plugins *demo_plugins_create(struct loop *loop, struct push_store *store,
                                         struct knobs *knobs) {
    struct demo_plugins *plugins = mem_zalloc(1, sizeof(*plugins));
    plugins->loop = loop;
    plugins->env =
        (struct push_session_env){.store = store, .knobs = knobs, .reader = push_json_create()};
    plugins->lines = DEFAULT_LINES;
    plugins->last_ns = clock_monotonic_ns();
    push_session_init(&plugins->detector, &plugins->env);
    push_session_init(&plugins->uploader, &plugins->env);
    plugins->detector.answered = answered;
    plugins->uploader.answered = ignore;
    plugins->timer.fire = fire;
    send_greetings(plugins);
    loop_timer_add(loop, &plugins->timer);
    return plugins;
}

void demo_plugins_destroy(struct demo_plugins *plugins) {
    if (plugins == NULL) {
        return;
    }
    loop_timer_remove(plugins->loop, &plugins->timer);
    push_session_finish(&plugins->detector);
    push_session_finish(&plugins->uploader);
    push_json_destroy(plugins->env.reader);
    buf_finish(&plugins->line);
    free(plugins);
}

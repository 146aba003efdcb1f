#include "profiler/run/engine.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/core/json_write.h"
#include "exporter/core/memory.h"
#include "exporter/net/http_client.h"
#include "profiler/analysis/report_text.h"
#include "profiler/run/process.h"

enum {
    CALL_MS = 30000,
    HANGING_MS = 3000,
    FIND_MS = 2000,
    MAX_ANSWER = 64 << 20,
    MAX_IMAGE = 512,
    FRAME_HEAD = 8
};

/* ---- requests ---- */

static json_t *load(const struct run_engine *engine) {
    return json_loadb(buf_str(&engine->client.answer), engine->client.answer.len, 0, NULL);
}

int run_engine_call(struct run_engine *engine, const char *method, const char *body,
                    struct error *err, const char *format, ...) {
    struct http_client *client = &engine->client;
    struct buf path CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&path, format, args);
    va_end(args);
    /* Or each step of the end of a run would wait that long again for an engine that hangs. */
    static bool hangs;
    int64_t limit_ms = hangs ? HANGING_MS : CALL_MS;
    int r = http_client_call(client, engine->socket, method, buf_str(&path), body, MAX_ANSWER,
                             limit_ms);
    hangs = r == -ETIMEDOUT;
    if (r < 0) {
        return error_set(err, r, "container engine at %s: %s", engine->socket,
                         r == -EFBIG    ? "the response is too large"
                         : r == -EPROTO ? "the response is not HTTP"
                                        : strerror(-r));
    }
    if (client->status < 400) {
        return 0;
    }
    json_auto_t *object = load(engine);
    const char *message = json_string_value(json_object_get(object, "message"));
    return error_set(err, client->status == 404 ? -ENOENT : -EIO, "container engine: %s",
                     message != NULL ? message : "rejected without a message");
}

static bool responds(struct http_client *client, const char *socket) {
    return http_client_call(client, socket, "GET", "/_ping", NULL, MAX_ANSWER, FIND_MS) == 0 &&
           client->status == 200;
}

static char *below(const char *base, const char *path) {
    return path == NULL || path[0] == '\0' ? NULL : file_path_join(base, path);
}

const char *run_engine_host(void) {
    const char *host = getenv("DOCKER_HOST");
    return host != NULL && strncmp(host, "unix://", 7) == 0 ? host + 7 : NULL;
}

int run_engine_open(struct run_engine *engine, const struct settings *settings, struct error *err) {
    const char *host = run_engine_host();
    const char *root = settings_string(settings, "path.rootfs");
    const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
    char *places[] = {
        host != NULL ? mem_strdup(host)
                     : below(root, settings_string(settings, "collector.container.docker-socket")),
        below(root, settings_string(settings, "collector.container.podman-socket")),
        runtime_dir != NULL ? file_path_join(runtime_dir, "podman/podman.sock") : NULL,
    };
    struct buf tried CLEANUP_BUF = {0};
    *engine = (struct run_engine){.client = HTTP_CLIENT_NONE};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (engine->socket == NULL && places[i] != NULL && responds(&engine->client, places[i])) {
            engine->socket = TAKE(places[i]);
        } else if (places[i] != NULL) {
            buf_printf(&tried, "%s%s", tried.len > 0 ? ", " : "", places[i]);
        }
        free(places[i]);
    }
    if (engine->socket != NULL) {
        return 0;
    }
    http_client_finish(&engine->client);
    return error_set(err, -ENODEV, "no container engine responds at %s", buf_str(&tried));
}

void run_engine_close(struct run_engine *engine) {
    if (engine->socket != NULL) {
        http_client_finish(&engine->client);
        free(TAKE(engine->socket));
    }
}

/* ---- images ---- */

/* The name becomes part of a URL path, so it must not contain anything special. */
static bool image_name_good(const char *image) {
    size_t len = strlen(image);
    return len > 0 && len <= MAX_IMAGE && strstr(image, "..") == NULL &&
           strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-") ==
               len;
}

int run_engine_image(struct run_engine *engine, const char *image, char **ret_digest,
                     struct error *err) {
    if (!image_name_good(image)) {
        return error_set(err, -EINVAL, "\"%s\" is not the name of an image", image);
    }
    int r = run_engine_call(engine, "GET", NULL, err, "/images/%s/json", image);
    if (r == -ENOENT) {
        return error_set(err, r, "image %s is not on this machine: pull it first", image);
    }
    if (r < 0) {
        return r;
    }
    json_auto_t *object = load(engine);
    const char *digest =
        json_string_value(json_array_get(json_object_get(object, "RepoDigests"), 0));
    const char *id = json_string_value(json_object_get(object, "Id"));
    *ret_digest = digest != NULL || id != NULL ? mem_strdup(digest != NULL ? digest : id) : NULL;
    return 0;
}

void run_engine_info(struct run_engine *engine, struct run_engine_info *ret_info) {
    *ret_info = (struct run_engine_info){0};
    if (run_engine_call(engine, "GET", NULL, NULL, "/info") < 0) {
        return;
    }
    json_auto_t *object = load(engine);
    const char *init =
        json_string_value(json_object_get(json_object_get(object, "InitCommit"), "ID"));
    ret_info->has_nvidia = json_object_get(json_object_get(object, "Runtimes"), "nvidia") != NULL;
    ret_info->has_init = init != NULL && strcmp(init, "N/A") != 0; /* Docker did not find it */
}

/* ---- describing a container ---- */

static void add_mount(struct buf *out, const char *from, const char *to, bool writable) {
    if (from != NULL) {
        json_open(out, NULL, '{');
        json_put_string(out, "Type", "bind");
        json_put_string(out, "Source", from);
        json_put_string(out, "Target", to);
        json_put_bool(out, "ReadOnly", !writable);
        json_close(out, '}');
    }
}

static void add_label(struct buf *out, const char *owner) {
    json_open(out, "Labels", '{');
    json_put_string(out, RUN_ENGINE_LABEL, owner);
    json_close(out, '}');
}

void run_engine_describe(const struct run_container_spec *spec, struct buf *out) {
    json_open(out, NULL, '{');
    json_put_string(out, "Image", spec->image);
    if (spec->argv != NULL && spec->argv[0] != NULL) {
        text_put_list(out, "Cmd", spec->argv);
    }
    if (spec->env != NULL) {
        text_put_list(out, "Env", spec->env);
    }
    add_label(out, spec->owner);
    json_open(out, "HostConfig", '{');
    json_put_string(out, "NetworkMode", spec->network != NULL ? spec->network : "host");
    if (spec->hosts != NULL) {
        text_put_list(out, "ExtraHosts", spec->hosts);
    }
    json_put_bool(out, "Init", spec->init);
    json_open(out, "Mounts", '[');
    add_mount(out, spec->socket_dir, "/run/waap", false);
    add_mount(out, spec->dataset, "/dataset", false);
    for (size_t i = 0; i < spec->mounts.n; i++) {
        const struct run_mount *mount = &spec->mounts.items[i];
        add_mount(out, mount->source, mount->target, mount->writable != 0);
    }
    json_close(out, ']');
    if (spec->nvidia_runtime) {
        json_put_string(out, "Runtime", "nvidia");
    }
    if (spec->gpu_request) {
        json_put(out, "DeviceRequests",
                 "[{\"Driver\":\"nvidia\",\"Count\":-1,\"Capabilities\":[[\"gpu\"]]}]");
    }
    json_close(out, '}');
    json_close(out, '}');
}

/* ---- containers ---- */

static bool is_id(const char *text) {
    return text[0] != '\0' && text[strspn(text, "0123456789abcdef")] == '\0';
}

int run_engine_create(struct run_engine *engine, const struct run_container_spec *spec,
                      char **ret_id, struct error *err) {
    struct buf body CLEANUP_BUF = {0};
    run_engine_describe(spec, &body);
    int r = run_engine_call(engine, "POST", buf_str(&body), err, "/containers/create");
    if (r < 0) {
        return r;
    }
    json_auto_t *object = load(engine);
    const char *id = json_string_value(json_object_get(object, "Id"));
    if (id == NULL || !is_id(id)) {
        return error_set(err, -EBADMSG, "container engine: created a container without an id");
    }
    *ret_id = mem_strdup(id);
    return 0;
}

int run_engine_create_network(struct run_engine *engine, char **ret_name, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    struct buf body CLEANUP_BUF = {0};
    struct run_owner owner = run_engine_owner();
    buf_printf(&name, "waap-run-%s", owner.text);
    json_open(&body, NULL, '{');
    json_put_string(&body, "Name", buf_str(&name));
    add_label(&body, owner.text);
    json_close(&body, '}');
    int r = run_engine_call(engine, "POST", buf_str(&body), err, "/networks/create");
    if (r == 0) {
        *ret_name = buf_take(&name);
    }
    return r;
}

/* ---- what killed runs leave behind ---- */

static uint64_t process_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

struct run_owner run_engine_owner(void) {
    struct run_owner owner;
    snprintf(owner.text, sizeof(owner.text), "%llu.%d", (unsigned long long)process_namespace(),
             (int)getpid());
    return owner;
}

static bool is_gone(const char *owner) {
    unsigned long long namespace;
    int pid;
    return owner != NULL && sscanf(owner, "%llu.%d", &namespace, &pid) == 2 &&
           namespace == process_namespace() && run_process_is_gone(pid);
}

/* Networks last: one that has containers cannot be removed. */
void run_engine_clear(struct run_engine *engine) {
    static const struct {
        const char *path, *list, *remove;
    } kinds[] = {
        {"/containers", "/json?all=1&", "?force=1&v=1"},
        {"/networks", "?", ""},
    };
    for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        /* {"label":["waap.run"]} */
        if (run_engine_call(engine, "GET", NULL, NULL,
                            "%s%sfilters=%%7B%%22label%%22%%3A%%5B%%22" RUN_ENGINE_LABEL
                            "%%22%%5D%%7D",
                            kinds[kind].path, kinds[kind].list) < 0) {
            continue;
        }
        json_auto_t *list = load(engine);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *item = json_array_get(list, i);
            const char *id = json_string_value(json_object_get(item, "Id"));
            const json_t *labels = json_object_get(item, "Labels");
            if (id != NULL && is_id(id) &&
                is_gone(json_string_value(json_object_get(labels, RUN_ENGINE_LABEL)))) {
                run_engine_call(engine, "DELETE", NULL, NULL, "%s/%s%s", kinds[kind].path, id,
                                kinds[kind].remove);
            }
        }
    }
}

/* ---- the state of a container ---- */

double run_engine_parse_time(const char *text) {
    struct tm tm = {0};
    char *rest = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (rest == NULL || tm.tm_year < 0) {
        return 0;
    }
    double fraction = *rest == '.' ? strtod(rest, &rest) : 0;
    strptime(rest, "%z", &tm);
    long offset = tm.tm_gmtoff; /* timegm clears it */
    return (double)(timegm(&tm) - offset) + fraction;
}

/* 128 + n means signal n, as in a shell. 255 is no signal: it is exit(-1). */
static void split_exit(int code, struct run_container_state *state) {
    bool by_signal = code > 128 && code - 128 <= SIGRTMAX;
    state->exit_code = by_signal ? 0 : code;
    state->exit_signal = by_signal ? code - 128 : 0;
}

int run_engine_parse_state(const char *text, size_t len, struct run_container_state *ret_state) {
    json_auto_t *object = json_loadb(text, len, 0, NULL);
    const json_t *state = json_object_get(object, "State");
    if (!json_is_object(state)) {
        return -EBADMSG;
    }
    *ret_state = (struct run_container_state){
        .running = json_is_true(json_object_get(state, "Running")),
        .pid = (pid_t)json_integer_value(json_object_get(state, "Pid")),
        .started_seconds =
            run_engine_parse_time(json_string_value(json_object_get(state, "StartedAt"))),
        .finished_seconds =
            run_engine_parse_time(json_string_value(json_object_get(state, "FinishedAt"))),
    };
    split_exit((int)json_integer_value(json_object_get(state, "ExitCode")), ret_state);
    json_t *networks = json_object_get(json_object_get(object, "NetworkSettings"), "Networks");
    const json_t *network = json_object_iter_value(json_object_iter(networks));
    const char *address = json_string_value(json_object_get(network, "IPAddress"));
    snprintf(ret_state->address, sizeof(ret_state->address), "%s", address != NULL ? address : "");
    return 0;
}

int run_engine_inspect(struct run_engine *engine, const char *id,
                       struct run_container_state *ret_state, struct error *err) {
    int r = run_engine_call(engine, "GET", NULL, err, "/containers/%s/json", id);
    if (r == 0 && run_engine_parse_state(buf_str(&engine->client.answer), engine->client.answer.len,
                                         ret_state) < 0) {
        r = error_set(err, -EBADMSG, "container engine: no state in its response");
    }
    return r;
}

/* Both streams come in frames: one byte stream number, three zero bytes, four bytes length. Of an
 * output that is too long for one response, the last lines are copied. */
void run_engine_copy_output(struct run_engine *engine, const char *id, int fd) {
    struct error err;
    int r = -EFBIG;
    for (int n_lines = 100000; r == -EFBIG && n_lines > 0; n_lines /= 10) {
        r = run_engine_call(engine, "GET", NULL, &err,
                            "/containers/%s/logs?stdout=1&stderr=1&tail=%d", id, n_lines);
    }
    if (r < 0) {
        dprintf(fd, "waap run: cannot read the output of the container: %s\n", err.text);
        return;
    }
    const struct buf *answer = &engine->client.answer;
    const unsigned char *data = (const unsigned char *)buf_str(answer);
    for (size_t at = 0; at + FRAME_HEAD <= answer->len;) {
        const unsigned char *head = data + at;
        size_t len = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
        at += FRAME_HEAD;
        len = len < answer->len - at ? len : answer->len - at;
        if (write(fd, data + at, len) < 0) {
            return;
        }
        at += len;
    }
}

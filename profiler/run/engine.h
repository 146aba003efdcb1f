#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/net/http_client.h"
#include "exporter/settings/settings.h"
#include "profiler/run/spec.h"

#define RUN_ENGINE_LABEL "waap.run"
#define RUN_ENGINE_REMOVE "/containers/%s?force=1&v=1"

/* A container engine (Docker or podman) behind its Unix socket. Every call blocks. */
struct run_engine {
    char *socket;
    struct http_client client; /* of the last call */
};

/* The socket that DOCKER_HOST names, or NULL. */
const char *run_engine_host(void);

/* Finds an engine that responds: at DOCKER_HOST, else at the sockets of the settings. */
int run_engine_open(struct run_engine *engine, const struct settings *settings, struct error *err);
void run_engine_close(struct run_engine *engine); /* accepts a zeroed struct */

/* Calls a path of the API: starts, signals, removes a container, waits for its end. A status from
 * 400 on becomes an error with the engine's message, -ENOENT for 404. */
int run_engine_call(struct run_engine *engine, const char *method, const char *body,
                    struct error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The registry digest of an image, else its id; the caller frees it. -ENOENT: no such image. */
int run_engine_image(struct run_engine *engine, const char *image, char **ret_digest,
                     struct error *err);

struct run_engine_info {
    bool has_nvidia; /* the runtime that gives a container the GPU */
    bool has_init;   /* the program for a container's first process */
};
void run_engine_info(struct run_engine *engine, struct run_engine_info *ret_info);

/* The name of this process, for run_engine_clear. Our pid is valid only in our pid namespace, so
 * it has both: "4026531836.1234". */
struct run_owner {
    char text[64];
};
struct run_owner run_engine_owner(void);

struct run_container_spec {
    const char *owner;
    const char *image;
    const char *const *argv;
    const char *const *env;
    const char *network;      /* NULL: the host's */
    const char *const *hosts; /* "name:address", added to /etc/hosts; NULL: none */
    const char *socket_dir;   /* mounted at /run/waap; NULL: none */
    const char *dataset;      /* mounted at /dataset, read-only; NULL: none */
    struct run_mounts mounts;
    bool init;           /* run the engine's init as first process */
    bool nvidia_runtime; /* run with NVIDIA's runtime */
    bool gpu_request;    /* request all GPUs from the engine */
};

/* Appends the request body that creates the container. */
void run_engine_describe(const struct run_container_spec *spec, struct buf *out);

/* Creates a network for the containers of this process; the caller frees its name. */
int run_engine_create_network(struct run_engine *engine, char **ret_name, struct error *err);

/* Creates a container; the caller frees its id. */
int run_engine_create(struct run_engine *engine, const struct run_container_spec *spec,
                      char **ret_id, struct error *err);

/* Removes the containers and networks of killed runs. */
void run_engine_clear(struct run_engine *engine);

struct run_container_state {
    bool running;
    pid_t pid; /* of its first process; 0: not running or not visible */
    int exit_code;
    int exit_signal;                          /* 0: none; else the exit code is 0 */
    double started_seconds, finished_seconds; /* since 1970; 0: not yet */
    char address[48];                         /* in its network; "": none of its own */
};

int run_engine_inspect(struct run_engine *engine, const char *id,
                       struct run_container_state *ret_state, struct error *err);

/* Parses the response of an inspection. 0 or -EBADMSG. */
int run_engine_parse_state(const char *text, size_t len, struct run_container_state *ret_state);

/* Writes the output of the container to a file. */
void run_engine_copy_output(struct run_engine *engine, const char *id, int fd);

/* "2026-11-16T14:00:00.123456789Z" as seconds since 1970; 0 if invalid or the year 1 (never). */
double run_engine_parse_time(const char *text);

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/settings/settings.h"

#define RUN_ENGINE_LABEL "waap.run"

/* A container engine (Docker or podman), called by HTTP over its Unix socket. Every call blocks
 * until the response or a timeout. */
struct run_engine {
    char *socket;
};

/* The socket that DOCKER_HOST names, or NULL. */
const char *run_engine_host(void);

/* Finds an engine that responds: at DOCKER_HOST, else at the sockets of the settings. */
int run_engine_open(struct run_engine *engine, const struct settings *settings, struct error *err);
void run_engine_close(struct run_engine *engine); /* accepts a zeroed struct */

/* The immutable name of an image: its registry digest, else its id. The caller frees it. -ENOENT:
 * the engine does not have the image. */
int run_engine_image(const struct run_engine *engine, const char *image, char **ret_digest,
                     struct error *err);

/* Whether the engine has NVIDIA's runtime, which gives a container the GPU. */
bool run_engine_has_nvidia(const struct run_engine *engine);

struct run_container_spec {
    const char *owner; /* for run_engine_clear */
    const char *image;
    const char *const *argv;
    const char *const *env;
    const char *socket_dir; /* mounted at /run/waap */
    const char *dataset;    /* mounted at /dataset, read-only; NULL: none */
    bool nvidia_runtime;    /* run with NVIDIA's runtime */
    bool gpu_request;       /* request all GPUs from the engine */
};

/* Appends the request body that creates the container. */
void run_engine_describe(const struct run_container_spec *spec, struct buf *out);

/* Creates a container; the caller frees its id. */
int run_engine_create(const struct run_engine *engine, const struct run_container_spec *spec,
                      char **ret_id, struct error *err);

/* Removes the containers that killed runs have left behind: those for whose owner `is_gone` is
 * true. */
void run_engine_clear(const struct run_engine *engine, bool (*is_gone)(const char *owner));

int run_engine_start(const struct run_engine *engine, const char *id, struct error *err);

struct run_container_state {
    bool running;
    pid_t pid; /* of its first process; 0: not running or not visible */
    int exit_code;
    int exit_signal;                          /* 0: none; else the exit code is 0 */
    double started_seconds, finished_seconds; /* since 1970; 0: not yet */
};

int run_engine_inspect(const struct run_engine *engine, const char *id,
                       struct run_container_state *ret_state, struct error *err);

/* Parses the response of an inspection. 0 or -EBADMSG. */
int run_engine_parse_state(const char *text, size_t len, struct run_container_state *ret_state);

/* Waits until it has stopped. */
int run_engine_wait(const struct run_engine *engine, const char *id, struct error *err);

/* Signals its first process; SIGKILL ends all of them. */
int run_engine_kill(const struct run_engine *engine, const char *id, int signal, struct error *err);

/* Writes the output of the container to a file. */
void run_engine_copy_output(const struct run_engine *engine, const char *id, int fd);

void run_engine_remove(const struct run_engine *engine, const char *id);

/* "2026-11-16T14:00:00.123456789Z" as seconds since 1970; 0 for an invalid time and for the year 1,
 * which means never. */
double run_engine_parse_time(const char *text);

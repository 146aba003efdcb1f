#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/settings/settings.h"

#define RUN_ENGINE_LABEL "waap.run"

/* A container engine, Docker or podman, spoken to by HTTP on its Unix socket. Every call waits for
 * its answer, some seconds at most. */
struct run_engine {
    char *socket;
};

/* The socket that DOCKER_HOST names, or NULL. */
const char *run_engine_host(void);

/* Finds one that answers: DOCKER_HOST, else where the settings say that engines are. */
int run_engine_open(struct run_engine *engine, const struct settings *settings, struct error *err);
void run_engine_close(struct run_engine *engine); /* accepts zeroes */

/* What names the image for good: its digest in a registry, else its own id. The caller frees it.
 * -ENOENT: the engine does not have it. */
int run_engine_image(const struct run_engine *engine, const char *image, char **ret_digest,
                     struct error *err);

/* Whether the engine has NVIDIA's runtime, which gives a container the GPU. */
bool run_engine_has_nvidia(const struct run_engine *engine);

struct run_container_wish {
    const char *owner; /* who makes it, for run_engine_clear */
    const char *image;
    const char *const *argv;
    const char *const *env;
    const char *socket_dir; /* becomes /run/waap */
    const char *dataset;    /* becomes /dataset, to be read only; NULL: none */
    bool nvidia_runtime;    /* the GPU by NVIDIA's runtime */
    bool gpu_request;       /* the GPU by a request to the engine */
};

/* Appends the JSON that describes a container to the engine. */
void run_engine_describe(const struct run_container_wish *wish, struct buf *out);

/* Makes a container; the caller frees its id. */
int run_engine_create(const struct run_engine *engine, const struct run_container_wish *wish,
                      char **ret_id, struct error *err);

/* Removes the containers whose maker has ended without doing so. `is_gone` looks at the maker's own
 * words. */
void run_engine_clear(const struct run_engine *engine, bool (*is_gone)(const char *owner));

int run_engine_start(const struct run_engine *engine, const char *id, struct error *err);

struct run_container_state {
    bool running;
    pid_t pid; /* of its first process; 0: not running, or hidden */
    int exit_code;
    int exit_signal;                          /* 0: none; the exit code is 0 then */
    double started_seconds, finished_seconds; /* since 1970; 0: not yet */
};

int run_engine_inspect(const struct run_engine *engine, const char *id,
                       struct run_container_state *ret_state, struct error *err);

/* Reads the answer to that question. 0 or -EBADMSG. */
int run_engine_parse_state(const char *text, size_t len, struct run_container_state *ret_state);

/* Waits until it has stopped. */
int run_engine_wait(const struct run_engine *engine, const char *id, struct error *err);

/* Signals its first process; of SIGKILL all die. */
int run_engine_kill(const struct run_engine *engine, const char *id, int signal, struct error *err);

/* Copies what it has printed to a file. */
void run_engine_copy_output(const struct run_engine *engine, const char *id, int fd);

void run_engine_remove(const struct run_engine *engine, const char *id);

/* "2026-11-16T14:00:00.123456789Z" as seconds since 1970; 0 for what it is not, and for the year 1,
 * which means never. */
double run_engine_parse_time(const char *text);

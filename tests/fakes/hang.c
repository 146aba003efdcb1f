#include "tests/fakes/collectors_fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A driver call that does not return for as long as a file exists. FILE.reached appears when the
 * call is made. */

static const struct metric_desc calls = {
    .name = "hang_calls_total",
    .help = "Collections begun.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc *const metrics[] = {&calls, NULL};

static const char *const places[] = {"collect", "open", NULL};

static const struct option options[] = {
    {
        .name = "collector.hang.file",
        .type = OPTION_STRING,
        .help = "Hang while this file exists",
    },
    {
        .name = "collector.hang.in",
        .type = OPTION_CHOICE,
        .default_text = "collect",
        .choices = places,
        .help = "Which call hangs",
    },
    {.name = NULL},
};

struct hang {
    const char *file;
    bool in_collect;
    double n_calls;
};

static void report_reached(const char *file) {
    char path[4096];
    snprintf(path, sizeof(path), "%s.reached", file);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
}

static void wait_while_present(const char *file) {
    enum { POLL_USEC = 10000 };
    if (file[0] != '\0' && access(file, F_OK) == 0) {
        report_reached(file);
    }
    while (file[0] != '\0' && access(file, F_OK) == 0) {
        usleep(POLL_USEC);
    }
}

static int hang_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct hang *hang = calloc(1, sizeof(*hang));
    if (hang == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    hang->file = settings_string(env->settings, "collector.hang.file");
    size_t place = settings_choice(env->settings, "collector.hang.in");
    hang->in_collect = strcmp(places[place], "collect") == 0;
    if (!hang->in_collect) {
        wait_while_present(hang->file);
    }
    *ret_state = hang;
    return 0;
}

static int hang_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    struct hang *hang = state;
    snapshot_add(out, &calls, NULL, ++hang->n_calls);
    if (hang->in_collect) {
        wait_while_present(hang->file);
    }
    return 0;
}

const struct collector collector_hang = {
    .name = "hang",
    .help = "a driver that does not answer",
    .metrics = metrics,
    .options = options,
    .open = hang_open,
    .collect = hang_collect,
    .close = free,
};

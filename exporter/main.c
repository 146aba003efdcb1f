#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/collectors.h"
#include "exporter/cli/cli.h"
#include "exporter/daemon/self_metrics.h"
#include "exporter/daemon/serve.h"
#include "exporter/http/process_metrics.h"
#include "exporter/http/stats.h"
#include "exporter/push/metrics.h"
#include "exporter/settings/flags.h"
#include "exporter/settings/suggest.h"
#include "placement/onnx/model.h"
#include "profiler/compare/compare.h"
#include "profiler/report/report.h"
#include "profiler/run/main.h"

struct command {
    const char *name;
    const char *arguments;
    const char *summary;
    int (*run)(int argc, char **argv);
    bool has_help; /* answers --help itself */
};

static const struct metric_desc *const own_tables[] = {process_metrics, http_stats_metrics,
                                                       self_metrics, NULL};
static const struct cli_build build = {
    .collectors = collectors_all,
    .own = {.name = "-", .metrics = push_metrics_all, .tables = own_tables},
};

/* Fails if the text was not written completely: half a list looks like a whole one. */
static int print(const struct buf *text) {
    if (fputs(buf_str(text), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap: standard output");
        return 1;
    }
    return 0;
}

static int run_check_config(int argc, char **argv) {
    return check_config_main(collectors_all, argc, argv);
}

static int run_healthcheck(int argc, char **argv) {
    return healthcheck_main(collectors_all, argc, argv);
}

/* A program of its own, which links libcurl. */
static int run_placement(int argc, char **argv) {
    (void)argc;
    return subprogram_exec("placement", "waap-placement", argv);
}

static int run_run(int argc, char **argv) {
    return run_main(collectors_all, argc, argv);
}

static int run_serve(int argc, char **argv) {
    struct buf answer CLEANUP_BUF = {0};
    return cli_answer(&build, argc, argv, &answer) ? print(&answer)
                                                   : serve_main(collectors_all, argc, argv);
}

static int run_version(int argc, char **argv) {
    (void)argc;
    (void)argv;
    struct buf text CLEANUP_BUF = {0};
    cli_write_version(&build, &text);
    return print(&text);
}

static int run_help(int argc, char **argv);

static const struct command commands[] = {
    {"check-config", "FILE...", "Say what is wrong with configuration files", run_check_config},
    {"compare", "A B", "Say what changed between two recorded runs", compare_main, true},
    {"control", "CONFIG", "Turn the knobs of plugins by what is measured", run_placement, true},
    {"healthcheck", "[flags]", "Ask the daemon of the same flags whether it is healthy",
     run_healthcheck},
    {"help", "[COMMAND]", "Show what a command takes", run_help},
    {"model", "FILE", "Show what an ONNX model is made of", model_main, true},
    {"place", "[flags]", "Say which node runs a model fastest", run_placement, true},
    {"report", "DIR...", "Make the reports of recorded runs again", report_main},
    {"run", "[FILE]", "Profile an application; see waap run --help", run_run, true},
    {"serve", "[flags]", "Serve metrics; see waap serve --help", run_serve, true},
    {"version", "", "Show the version", run_version},
};

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static void print_usage(FILE *to) {
    fprintf(to, "usage: waap COMMAND [arguments]\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        fprintf(to, "  %-12s  %-9s  %s\n", commands[i].name, commands[i].arguments,
                commands[i].summary);
    }
}

static int unknown_command(const char *name) {
    if (name[0] == '-') {
        fprintf(stderr, "waap: %s: a command comes first, as in: waap serve %s\n\n", name, name);
    } else {
        struct suggest suggest;
        struct buf hint CLEANUP_BUF = {0};
        suggest_init(&suggest, name);
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
            suggest_offer(&suggest, commands[i].name, strlen(commands[i].name));
        }
        suggest_write(&suggest, "", &hint);
        fprintf(stderr, "waap: unknown command \"%s\"%s\n\n", name, buf_str(&hint));
    }
    print_usage(stderr);
    return 2;
}

static int help_of(const struct command *command) {
    if (command->has_help) {
        return command->run(2, (char *[]){(char *)command->name, "--help", NULL});
    }
    printf("usage: waap %s %s\n\n%s\n", command->name, command->arguments, command->summary);
    return 0;
}

static int run_help(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stdout);
        return 0;
    }
    const struct command *command = find_command(argv[1]);
    return command != NULL ? help_of(command) : unknown_command(argv[1]);
}

/* Where standard error is closed, the next file or connection would become descriptor 2 and get
 * what is logged. */
static void fill_standard_descriptors(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
}

int main(int argc, char **argv) {
    fill_standard_descriptors();
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (flags_ask_for_help(2, argv)) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return run_version(argc - 1, argv + 1);
    }
    const struct command *command = find_command(argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    bool is_help = !command->has_help && flags_ask_for_help(argc - 1, argv + 1);
    return is_help ? help_of(command) : command->run(argc - 1, argv + 1);
}

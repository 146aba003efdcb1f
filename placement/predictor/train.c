#include "placement/predictor/train.h"

#include <stdio.h>
#include <string.h>

#include "placement/predictor/validation.h"

struct arguments {
    const char *out;
    bool validate;
    bool simulated;
    char **files;
    int n_files;
};

static int usage(FILE *to) {
    fputs("usage: waap place train DATA.csv... --out=MODEL.json [--simulated] [--no-validation]\n\n"
          "Trains the predictor of waap place with measured runs. The columns are those of the\n"
          "original's data, found by their names: conv_layers, device (raspberrypi, jetson,\n"
          "desktop), device_disk_usage_percent, device_load_percent, disk_io_read_bytes,\n"
          "disk_io_write_bytes, execution_time (seconds or HH:MM:SS), filter_details,\n"
          "fully_conn_layers, model_name, pool_layers, total_parameters; others are passed over.\n"
          "With a column device_cpu_cores the load is that of each of so many of four cores.\n\n"
          "First it shows how well models are predicted that it was not trained with, and beside\n"
          "that rows at random, which flatters. Then it trains with everything and saves that,\n"
          "as .json or .ubj. The same data give the same file. --simulated marks the model as\n"
          "trained with made-up data.\n",
          to);
    return to == stdout ? 0 : 2;
}

/* -1, or the exit code. */
static int take_arguments(int argc, char **argv, struct arguments *ret) {
    *ret = (struct arguments){.validate = true, .files = argv};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return usage(stdout);
        }
        if (strncmp(argv[i], "--out=", 6) == 0) {
            ret->out = argv[i] + 6;
        } else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) {
            ret->out = argv[++i];
        } else if (strcmp(argv[i], "--simulated") == 0) {
            ret->simulated = true;
        } else if (strcmp(argv[i], "--no-validation") == 0) {
            ret->validate = false;
        } else if (argv[i][0] != '-') {
            ret->files[ret->n_files++] = argv[i];
        } else {
            fprintf(stderr, "waap place train: %s: not understood\n\n", argv[i]);
            return usage(stderr);
        }
    }
    const char *missing = ret->n_files == 0 ? "a DATA.csv" : "--out=MODEL.json";
    if (ret->n_files > 0 && ret->out != NULL) {
        return -1;
    }
    fprintf(stderr, "waap place train: expected %s\n\n", missing);
    return usage(stderr);
}

static int validate(const struct training *training, enum validation_kind kind, const char *title,
                    struct error *err) {
    struct validation v;
    int r = validation_run(training, kind, &v, err);
    if (r < 0) {
        return r;
    }
    printf("%-26s %5zu %8.3f s %8.3f s %7.1f %%", title, v.n_folds, v.mae_seconds, v.rmse_seconds,
           100 * v.mape);
    if (v.n_choices > 0) {
        printf(" %6.1f %% %6.1f %%\n", 100 * v.top1, 100 * v.regret);
    } else {
        printf("   (one kind of device only)\n");
    }
    return 0;
}

static int validate_both(const struct training *training, struct error *err) {
    printf("%-26s %5s %10s %10s %9s %8s %8s\n", "cross-validation", "folds", "MAE", "RMSE", "MAPE",
           "top-1", "regret");
    int r = validate(training, VALIDATION_GROUPED, "models it has not seen", err);
    return r < 0 ? r : validate(training, VALIDATION_RANDOM, "rows at random", err);
}

static int save(const struct training *training, const struct arguments *arguments,
                struct error *err) {
    struct gbt *gbt CLEANUP_GBT = NULL;
    int r = validation_train(training, &gbt, err);
    if (r < 0) {
        return r;
    }
    struct gbt_about about = {.simulated = arguments->simulated};
    snprintf(about.trained, sizeof(about.trained), "%zu %s runs of %zu models", training->n_rows,
             arguments->simulated ? "simulated" : "measured", training->n_models);
    r = gbt_save(gbt, &about, arguments->out, err);
    if (r == 0) {
        printf("%s: trained with %s\n", arguments->out, about.trained);
    }
    return r;
}

int train_main(int argc, char **argv) {
    struct arguments arguments;
    int exit_code = take_arguments(argc, argv, &arguments);
    if (exit_code >= 0) {
        return exit_code;
    }
    struct training training CLEANUP_TRAINING = {0};
    struct error err = {0};
    int r = 0;
    for (int i = 0; r == 0 && i < arguments.n_files; i++) {
        r = training_read(&training, arguments.files[i], &err);
    }
    if (r == 0 && arguments.validate) {
        r = validate_both(&training, &err);
    }
    r = r < 0 ? r : save(&training, &arguments, &err);
    if (r < 0) {
        fflush(stdout);
        fprintf(stderr, "waap place train: %s\n", err.text);
        return 1;
    }
    return 0;
}

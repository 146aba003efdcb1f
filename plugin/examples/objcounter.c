#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <waap/plugin.h>

/* Counts objects in a camera's pictures, or would: detection takes as long as it would on a small
 * board, so the larger `res` is, the fewer frames a second. Turn it while it runs:
 *
 *     curl -X PUT localhost:9090/api/v1/plugins/objcounter/params/res -d '{"value": 480}'
 *
 * Build: cc objcounter.c $(pkg-config --cflags --libs waap-plugin) */

static const char *const kinds[] = {"car", "person", "bicycle"};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Takes time by the number of pixels, about 30 ms for 720 lines. */
static void detect(double lines) {
    double seconds = 0.03 * (lines / 720) * (lines / 720);
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static int usage(const char *program) {
    fprintf(stderr, "usage: %s [seconds]\n", program);
    return 2;
}

int main(int argc, char **argv) {
    char *end = NULL;
    double seconds = argc > 1 ? strtod(argv[1], &end) : 1e9;
    if (argc > 2 || (argc == 2 && (end == argv[1] || *end != '\0'))) {
        return usage(argv[0]);
    }

    struct waap_metric *fps = waap_rate("fps", "Pictures looked at.", NULL);
    struct waap_metric *inference = waap_histogram("inference_seconds", NULL, NULL);
    struct waap_metric *objects[N_KINDS];
    for (size_t i = 0; i < N_KINDS; i++) {
        objects[i] = waap_counter("objects_total", "Objects seen.", "kind", kinds[i], NULL);
    }
    struct waap_param *res = waap_param_new(&(struct waap_param_spec){.type = WAAP_INT,
                                                                      .name = "res",
                                                                      .help = "Lines of a picture.",
                                                                      .unit = "pixels",
                                                                      .number = 720,
                                                                      .min = 240,
                                                                      .max = 1080,
                                                                      .step = 120});

    for (double began = waap_now(); waap_now() - began < seconds;) {
        int64_t lines = waap_get_int(res);
        {
            WAAP_TIMEIT(inference);
            detect((double)lines);
        }
        for (size_t i = 0; i < N_KINDS; i++) {
            if (random() % 2000 < lines) {
                waap_inc(objects[i]);
            }
        }
        waap_inc(fps);
    }
    return 0;
}

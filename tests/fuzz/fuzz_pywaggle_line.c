/* Covers 45 % of exporter/channel/pywaggle_log.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/pywaggle_log.h"
#include "exporter/metrics/metric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The properties of an update that the store relies on. */
static void check(const struct push_update *update) {
    assert(metric_name_valid(update->name, strlen(update->name)));
    assert(update->help != NULL && update->n_values == 1);
    for (size_t i = 0; i < update->n_labels; i++) {
        assert(update->labels[i].value[0] != '\0');
        assert(i == 0 || strcmp(update->labels[i - 1].name, update->labels[i].name) < 0);
    }
}

/* Lines of a run log, one after the other, each in memory of its size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    const uint8_t *end = data + len;
    while (data < end) {
        const uint8_t *newline = memchr(data, '\n', (size_t)(end - data));
        size_t n = (size_t)((newline != NULL ? newline : end) - data);
        char *text CLEANUP_FREE = malloc(n + 1);
        memcpy(text, data, n);
        struct pywaggle_line line;
        struct error err = {0};
        int r = pywaggle_line_read(text, n, &line, &err);
        assert((r == 0) == (line.n_updates > 0) && (r == 0 || err.text[0] != '\0'));
        for (size_t i = 0; i < line.n_updates; i++) {
            check(&line.updates[i]);
        }
        data += n + 1;
    }
    return 0;
}

/* Covers exporter/metrics/selector.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/metrics/parse.h"
#include "exporter/metrics/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct exposition_doc *page(void) {
    static const struct exposition_limits limits = {.max_families = 9,
                                                    .max_samples = 9,
                                                    .max_labels = 9,
                                                    .max_name_len = 99,
                                                    .max_value_len = 99};
    static char text[] = "fps{job=\"x\",plugin=\"a\"} 1\n"
                         "fps{plugin=\"b\\\"\\n\\\\\"} 3\n"
                         "# TYPE t_seconds histogram\n"
                         "t_seconds_bucket{le=\"+Inf\"} 4\n"
                         "t_seconds_sum 5\n"
                         "t_seconds_count 4\n";
    static struct exposition_doc doc;
    int r = doc.n_samples > 0 ? 0 : exposition_parse(text, strlen(text), &limits, &doc, NULL);
    assert(r == 0);
    return &doc;
}

/* The first line as a selector, the rest as a label's value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    char *newline = strchr(text, '\n');
    const char *value = newline != NULL ? newline + 1 : "";
    if (newline != NULL) {
        *newline = '\0';
    }
    struct selector *selector CLEANUP_SELECTOR = NULL;
    struct error err = {0};
    if (selector_create(text, &selector, &err) < 0) {
        assert(err.text[0] != '\0' && selector == NULL);
        return 0;
    }
    struct label label = {.name = "x", .value = value};
    int r = selector_match(selector, "name", &label, 1, NULL, 0);
    assert(selector_match(selector, "name", NULL, 0, &label, 1) == r);
    double found = 0;
    size_t n = selector_find(selector, page(), &found);
    assert(n <= page()->n_samples && (n > 0) == (found != 0));
    return 0;
}

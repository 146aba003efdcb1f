/* Covers placement/client/selector.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/metrics/exposition_parse.h"
#include "placement/client/selector.h"

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

/* A selector of a user's configuration: any bytes up to the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    struct selector selector CLEANUP_SELECTOR = {0};
    struct error err = {0};
    if (selector_parse(text, &selector, &err) < 0) {
        assert(err.text[0] != '\0' && selector.text == NULL);
        return 0;
    }
    assert(metric_name_valid(selector.name, strlen(selector.name)));
    for (size_t i = 0; i < selector.n_matchers; i++) {
        const char *label = selector.matchers[i].label;
        assert(metric_label_name_valid(label, strlen(label)));
    }
    double value = 0;
    size_t n = selector_find(&selector, page(), &value);
    assert(n <= page()->n_samples && (n > 0) == (value != 0));
    return 0;
}

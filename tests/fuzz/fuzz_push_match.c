/* Covers exporter/gateway/match.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/gateway/match.h"
#include "exporter/gateway/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The first line as a selector and as a regular expression, the rest as a label's value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    if (text == NULL) {
        return 0;
    }
    char *newline = strchr(text, '\n');
    const char *value = newline != NULL ? newline + 1 : "";
    if (newline != NULL) {
        *newline = '\0';
    }
    struct error err = {0};
    struct push_match *match CLEANUP_PUSH_MATCH = NULL;
    if (push_match_create(text, &match, &err) == 0) {
        struct label label = {.name = "x", .value = value};
        push_match_test(match, "name", &label, 1, NULL, 0);
        assert(!push_match_test(match, "", NULL, 0, NULL, 0)); /* never all there is */
    } else {
        assert(err.text[0] != '\0');
    }
    struct push_pattern *pattern = NULL;
    if (push_pattern_create(text, &pattern, &err) == 0) {
        bool first = push_pattern_test(pattern, value);
        assert(push_pattern_test(pattern, value) == first);
        push_pattern_destroy(pattern);
    }
    return 0;
}

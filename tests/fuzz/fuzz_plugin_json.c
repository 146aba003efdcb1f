/* Covers plugin/c/plugin_json.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/c/plugin_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What an exporter says to a plugin: any line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *line = strndup((const char *)data, len);
    if (line == NULL) {
        return 0;
    }
    size_t before = strlen(line);
    struct waap_json_line read;
    if (waap_json_read(line, &read)) {
        const char *const texts[] = {read.error, read.metric, read.param,
                                     read.value.type == WAAP_JSON_TEXT ? read.value.text : NULL};
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            assert(texts[i] == NULL ||
                   (texts[i] > line && texts[i] + strlen(texts[i]) < line + before));
        }
    }
    free(line);
    return 0;
}

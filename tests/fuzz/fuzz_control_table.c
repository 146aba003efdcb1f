/* Covers placement/control/table.c. */
#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "placement/control/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The summary of a sweep: any bytes, for a knob that is a number and for one of levels. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct knob_value levels[] = {{.form = KNOB_TEXT, .text = "slow"},
                                  {.form = KNOB_NUMBER, .number = 2}};
    for (size_t n_levels = 0; n_levels <= ARRAY_LEN(levels); n_levels += ARRAY_LEN(levels)) {
        struct control_loop_config loop = {
            .knob = {.param = "res"}, .levels = levels, .n_levels = n_levels};
        struct arena arena = {0};
        struct buf copy CLEANUP_BUF = {0};
        struct error err = {0};
        const struct control_entry *entries;
        size_t n = 0;
        buf_add(&copy, data, len);
        buf_add_char(&copy, ' ');
        int r = control_table_parse(copy.data, copy.len, &loop, "fps", &arena, &entries, &n, &err);
        assert(r == 0 ? n >= 2 : err.text[0] != '\0');
        for (size_t i = 0; i < n; i++) {
            assert(isfinite(entries[i].position) && isfinite(entries[i].measure));
            assert(i == 0 || entries[i - 1].position < entries[i].position);
        }
        arena_finish(&arena);
    }
    return 0;
}

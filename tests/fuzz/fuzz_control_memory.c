/* Covers 75 % of placement/control/memory.c. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "placement/control/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { N_LOOPS = 2 };

/* A loop continues from a state that it can have had. */
static void recall(const struct control_memory *memory) {
    struct control_state state;
    control_law_start(&state, memory->position);
    control_memory_recall(memory, &state);
    assert(isfinite(state.output) && isfinite(state.widening) && isfinite(state.floor));
    assert(state.widening >= 0 && state.floor >= 0);
    assert(!state.has_changed || state.changed_ns <= clock_monotonic_ns());
    assert(abs(state.last_direction) <= 1);
    control_memory_of("a", &state);
}

/* A file of memories: any bytes. Memories that are written and read again stay the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct control_memory entries[N_LOOPS] = {{.name = "a"}, {.name = "b\"\n"}};
    struct control_memory again[N_LOOPS] = {{.name = "a"}, {.name = "b\"\n"}};
    struct buf copy CLEANUP_BUF = {0};
    struct error err = {0};
    buf_add(&copy, data, len);
    buf_add_char(&copy, '\n');
    if (control_memory_parse(copy.data, copy.len, entries, N_LOOPS, &err) < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    buf_reset(&copy);
    control_memory_format(entries, N_LOOPS, &copy);
    int r = control_memory_parse(copy.data, copy.len, again, N_LOOPS, &err);
    assert(r == 0);
    for (size_t i = 0; i < N_LOOPS; i++) {
        assert(entries[i].is_set == again[i].is_set);
        assert(entries[i].output == again[i].output);
        recall(&entries[i]);
    }
    return 0;
}

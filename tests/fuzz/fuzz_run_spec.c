/* Covers profiler/run/spec.c. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "profiler/run/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Whatever was taken for good can be run. */
static void check(const struct run_spec *spec) {
    assert(spec->n_targets > 0 && spec->interval_ms >= 10);
    for (size_t i = 0; i < spec->n_targets; i++) {
        const struct run_target *target = &spec->targets[i];
        assert(target->name[0] != '\0' && strchr(target->name, '/') == NULL);
        assert(target->args != NULL && target->env != NULL);
        assert(target->repeats > 0 && target->warmup >= 0 && target->timeout_ms >= 0);
        assert(run_spec_target(spec, target->name) == target);
    }
    for (size_t i = 0; i < spec->n_services; i++) {
        assert(spec->services[i].command[0] != NULL);
    }
    for (size_t i = 0; i < spec->n_gates; i++) {
        assert(spec->gates[i].metric != NULL);
    }
}

/* A sage.yaml: any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct run_spec spec CLEANUP_RUN_SPEC;
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = run_spec_parse("f", (const char *)data, len, &spec, &problems);
    assert((r == 0) == (problems.n_lines == 0));
    for (size_t i = 0; i < problems.n_lines; i++) {
        assert(strncmp(problems.lines[i], "f:", 2) == 0);
    }
    if (r == 0) {
        check(&spec);
    }
    return 0;
}

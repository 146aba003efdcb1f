#include "tests/fakes/collectors_fake.h"

const struct collector *const collectors_all[] = {
    &collector_absent,  &collector_bench, &collector_fail,
    &collector_garbage, &collector_hang,  &collector_sampled,
    &collector_slow,    &collector_zoo,   NULL,
};

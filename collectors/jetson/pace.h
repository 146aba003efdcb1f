#pragma once

#include <stdbool.h>
#include <stdint.h>

enum jetson_power { JETSON_POWER_UNKNOWN, JETSON_POWER_ACTIVE, JETSON_POWER_SUSPENDED };

/* When to read the GPU's load. Each reading takes a reference that puts off the GPU's power-down:
 * ten per second would keep an idle GPU awake and change what they measure. So after a second of
 * zeros it is read more slowly than the GPU's autosuspend delay, until there is load again, or its
 * power state or its rail shows activity. A zeroed struct reads always. */
struct jetson_pace {
    int64_t idle_interval_ns; /* 0: the GPU never powers down by itself, read always */
    int64_t zero_since_ns;    /* when the run of zeros began */
    int64_t read_ns;          /* the latest reading */
    int64_t rail_ns;          /* the latest reading that the rail caused */
    bool zero;                /* the latest reading was zero */
    bool suspended;           /* seen powered down since then */
    double idle_watts;        /* the lowest of the rail since then; NAN: unknown */
};

/* `autosuspend_ms` as the kernel has it; below zero: never. */
void jetson_pace_init(struct jetson_pace *pace, double autosuspend_ms);

/* Whether the load has been zero for so long that jetson_pace_due wants to know the power state. */
bool jetson_pace_idle(const struct jetson_pace *pace, int64_t now_ns);

/* Whether to read the load now; if not, it may be taken for zero. `watts` of the GPU's rail, or
 * NAN. */
bool jetson_pace_due(struct jetson_pace *pace, int64_t now_ns, enum jetson_power power,
                     double watts);

/* Records a reading. */
void jetson_pace_note(struct jetson_pace *pace, int64_t now_ns, double load, double watts);

/* The content of power/runtime_status. */
enum jetson_power jetson_power_parse(const char *text);

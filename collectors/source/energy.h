#pragma once

#include <stddef.h>
#include <stdint.h>

/* Passes measured energy from the collectors that measure it to the one that attributes it to
 * containers. All calls may come from any thread. */
struct energy;
struct energy_meter;

/* The totals of a meter since it was opened. */
struct energy_reading {
    double joules;
    double seconds;          /* covered by them */
    double gpu_joules;       /* the GPU's part of them; NAN: not measured separately */
    double gpu_busy_seconds; /* NAN: not known */
};

/* A container's current share of the GPU's work, from 0 to 1. */
struct energy_share {
    const char *id; /* the path of its cgroup */
    double ratio;
};

struct energy *energy_create(void);
void energy_destroy(struct energy *energy); /* all meters are closed; accepts NULL */

/* Opens the meter of that name. It replaces an open one, as when a collector is restarted before
 * the old one has ended. NULL if `energy` is NULL. */
struct energy_meter *energy_meter_open(struct energy *energy, const char *name);
void energy_meter_close(struct energy_meter *meter); /* accepts NULL */

/* Replaces the meter's reading and shares. Accepts NULL. */
void energy_meter_put(struct energy_meter *meter, const struct energy_reading *reading,
                      const struct energy_share *shares, size_t n_shares);

/* A copy of all readings. A zeroed struct is an empty list. */
struct energy_list {
    struct energy_row {
        uint64_t meter; /* never the same for two */
        struct energy_reading reading;
        struct energy_share *shares;
        size_t n_shares;
    } * rows;
    size_t n_rows;
};

/* Brings the list up to date. Accepts NULL. */
void energy_read(struct energy *energy, struct energy_list *list);
void energy_list_finish(struct energy_list *list);

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/scan.h"

/* What is seen again in every collection (disks, mounts, CPUs) and is kept from one to the next, so
 * that its labels are rendered once. Found by a key, mostly in the same order as the last time. */

/* The head of a row: the first member of the user's struct. */
struct row {
    char *key;
    size_t key_len;
    unsigned round; /* that saw it last */
    bool is_new;    /* added by the last rows_see: the rest is zeroed */
    bool again;     /* the last rows_see was not the first of this round */
};

/* `size`, `finish` and `max` are set by the user; zeroes otherwise are an empty table. */
struct rows {
    size_t size;               /* of the user's struct */
    void (*finish)(void *row); /* frees what the user's struct holds */
    size_t max;                /* rows; 0: no limit */
    struct row **all;          /* in the order in which they were first seen */
    size_t n, cap;
    size_t next; /* where the next key is expected */
    unsigned round;
};

/* The row with that key, added if there is none; NULL if there are too many. Its address stays the
 * same while it lives. */
void *rows_see(struct rows *rows, struct scan_word key);

/* The same, but adds nothing: NULL if there is no such row. */
void *rows_find(struct rows *rows, struct scan_word key);

/* Lets the next sweep drop the row although it was seen. */
void rows_unsee(const struct rows *rows, struct row *row);

/* Ends a round: drops the rows that were not seen in it. */
void rows_sweep(struct rows *rows);

/* Drops all rows. */
void rows_finish(struct rows *rows);

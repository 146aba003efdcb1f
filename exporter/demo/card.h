#pragma once

#include <stdint.h>

/* A graphics card of a computer that does not exist, as demo_model.h is a board. */

#define DEMO_CARD_MIB 16376
#define DEMO_CARD_WATTS 140.0  /* its power limit */
#define DEMO_CARD_HERTZ 1560e6 /* its highest clocks */
#define DEMO_CARD_MEMORY_HERTZ 7001e6

struct demo_card {
    uint64_t random;
    double demand; /* what there is to do, from 0 to 1 */

    /* Loads are ratios. */
    double load;
    double memory_load;
    double decoder_load;
    double hertz;
    double memory_hertz;
    double memory_bytes;
    double watts;
    double joules; /* since it was made */
    double celsius;
    double fan_duty;
};

/* An idle card at room temperature. */
void demo_card_init(struct demo_card *card, uint64_t seed);

/* What `seconds` of that demand bring. */
void demo_card_step(struct demo_card *card, double demand, double seconds);

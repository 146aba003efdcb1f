#include "exporter/demo/card.h"

#include <stdbool.h>

#include "exporter/demo/math.h"

#define MIB (1024.0 * 1024)

static const double ambient_celsius = 26;

/* The driver drops to the lowest clocks when there is nothing to do, and takes the highest ones
 * that power allows otherwise. */
static void step_clocks(struct demo_card *card) {
    bool idle = card->load < 0.01;
    double held_back = card->watts > 0.97 * DEMO_CARD_WATTS ? 0.94 : 1;
    card->hertz = idle ? 210e6 : DEMO_CARD_HERTZ * held_back;
    card->memory_hertz = idle ? 405e6 : DEMO_CARD_MEMORY_HERTZ;
}

static void step_power(struct demo_card *card, double seconds) {
    double clock = card->hertz / DEMO_CARD_HERTZ;
    double target = 14 + (card->load > 0 ? 18 : 0) + 122 * card->load * clock;
    target = demo_clamp(target + demo_noise(&card->random, 1.2), 9, DEMO_CARD_WATTS);
    double before = card->watts;
    card->watts = demo_approach(card->watts, target, seconds, 0.25);
    card->joules += seconds * (before + card->watts) / 2;
}

static void step_heat(struct demo_card *card, double seconds) {
    double kelvin_per_watt = 0.52 - 0.22 * card->fan_duty;
    double target = ambient_celsius + kelvin_per_watt * card->watts;
    card->celsius = demo_approach(card->celsius, target, seconds, 14);
    double duty = demo_clamp((card->celsius - 35) / 40, 0.3, 1);
    card->fan_duty = demo_approach(card->fan_duty, duty, seconds, 5);
}

void demo_card_step(struct demo_card *card, double demand, double seconds) {
    card->demand = demand;
    double load = demand + demo_noise(&card->random, 0.04 + 0.08 * demand);
    card->load = demand < 0.02 ? 0 : demo_clamp(load, 0, 1);
    card->memory_load = demo_clamp(0.55 * card->load, 0, 1);
    card->decoder_load = demo_clamp(0.3 * demand, 0, 1);
    double used = (620 + 5400 * (demand < 0.02 ? 0.6 : 0.7 + 0.3 * demand)) * MIB;
    card->memory_bytes = demo_approach(card->memory_bytes, used, seconds, 2);
    step_clocks(card);
    step_power(card, seconds);
    step_heat(card, seconds);
}

void demo_card_init(struct demo_card *card, uint64_t seed) {
    *card = (struct demo_card){
        .random = seed,
        .memory_bytes = 620 * MIB,
        .watts = 14,
        .celsius = ambient_celsius,
        .fan_duty = 0.3,
    };
}

#pragma once

#include "collectors/nvml/library.h"
#include "exporter/demo/card.h"

/* NVIDIA's library for computers without one: its calls answer what simulated cards do. As with the
 * real one, there is one of it in a process. */
enum { DEMO_N_CARDS = 2 };

extern const struct nvml_library demo_nvml_library;

/* Says what the cards do from here on; any thread may call. */
void demo_nvml_update(const struct demo_card cards[static DEMO_N_CARDS]);

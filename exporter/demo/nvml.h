#pragma once

#include "collectors/nvml/library.h"
#include "exporter/demo/model.h"

/* A replacement for NVIDIA's library that reports simulated cards. Like the real one, a process has
 * one. */
enum { DEMO_N_CARDS = 2 };

extern const struct nvml_library demo_nvml_library;

/* Sets the state of the cards; from any thread. */
void demo_nvml_update(const struct demo_card cards[static DEMO_N_CARDS]);

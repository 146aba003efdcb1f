#pragma once

#include "exporter/core/error.h"
#include "exporter/settings/settings.h"

/* `waap serve --demo`: hardware for those who have none. A thread of its own writes the files of a
 * simulated board, and the collectors read these instead of the machine's; simulated cards answer
 * in the place of NVIDIA's library. */
enum demo_kind { DEMO_OFF, DEMO_JETSON, DEMO_DGPU }; /* the choices of the option "demo" */

struct demo;
struct nvml_library;

/* Starts what the setting `demo` asks for; `*ret_demo` is NULL where it is off. */
int demo_create(const struct settings *settings, struct demo **ret_demo, struct error *err);

/* Ends the thread and removes the files. Accepts NULL. */
void demo_destroy(struct demo *demo);

/* Points the collectors at the simulated files, whatever else is set. -EINVAL where `settings` ask
 * for another demo than the one that runs (NULL: none does). */
int demo_redirect(const struct demo *demo, struct settings *settings, struct error *err);

/* The library that cards are seen by; NULL: the machine's. `demo` may be NULL. */
const struct nvml_library *demo_nvml(const struct demo *demo);

/* A few words for who might take it for real. */
const char *demo_notice(const struct demo *demo);

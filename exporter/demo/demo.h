#pragma once

#include "exporter/core/error.h"
#include "exporter/settings/settings.h"

/* `waap serve --demo`: simulated hardware. A thread writes the files of a simulated board, and the
 * collectors read these instead of the machine's; simulated cards replace NVIDIA's library. */
enum demo_kind { DEMO_OFF, DEMO_JETSON, DEMO_DGPU }; /* the choices of the option "demo" */

struct demo;
struct nvml_library;

/* Starts the demo of the setting `demo`; `*ret_demo` is NULL if it is off. */
int demo_create(const struct settings *settings, struct demo **ret_demo, struct error *err);

/* Ends the thread and removes the files. Accepts NULL. */
void demo_destroy(struct demo *demo);

/* Sets the paths of the collectors to the simulated files. -EINVAL if `settings` has another demo
 * than the running one (NULL: none). */
int demo_redirect(const struct demo *demo, struct settings *settings, struct error *err);

/* The simulated NVIDIA library; NULL: use that of the machine. `demo` may be NULL. */
const struct nvml_library *demo_nvml(const struct demo *demo);

/* A text that warns users of simulated values. */
const char *demo_notice(const struct demo *demo);

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "profiler/run/spec.h"

/* What the application needs beside itself, such as a server that plays a video: started before it,
 * waited for until ready, ended after it. */
struct run_services;

struct run_session;

/* Starts them one after the other; each is ready before the next starts. `dir` is where they run
 * (NULL: here); what they print goes to files in the folder of the session. */
int run_services_start(struct run_session *session, const char *dir, struct error *err);

/* Ends them, if there are any. */
void run_services_stop(struct run_session *session);

/* A child of ours has ended; whether it was one of them. */
bool run_services_reaped(struct run_services *services, pid_t pid);

/* Whether something listens at "8090" (of this machine) or "host:8090". */
bool run_service_listens(const char *address);

#pragma once

#include "profiler/run/session.h"

/* Writes the first line of the record: the application, the machine, the settings, the gates. */
void run_environment_write(struct run_session *session, const char *image,
                           const char *image_digest);

/* The commit that is checked out in the folder `dir` or above it, from the files of git; the caller
 * frees it. NULL: none. */
char *run_environment_commit(const char *dir);

#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

/* Commands that a program beside this one carries out, because it links what the daemon must not.
 */

/* Appends the path at which `program` is looked for at the `i`-th try, by the path of the own
 * executable: beside it, where the build puts it, in libexec of the same prefix, where it was
 * configured to be installed. False when there is no such try. */
bool subprogram_path(const char *own_exe, const char *room, const char *program, size_t i,
                     struct buf *out);

/* Turns into `program`, which the build puts into the folder `room`, with these arguments. Returns
 * only on failure, after it has said why, what to exit with. */
int subprogram_exec(const char *room, const char *program, char **argv);

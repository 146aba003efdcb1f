#pragma once

#include "exporter/core/error.h"

/* Makes the files that a manifest lists, below the directory `root`: "[directory]", where {0..3}
 * stands for four directories, then its files as "name = content" and links as "name -> target".
 * Contents may hold \n and \0 and get a newline at the end unless they end in \0. Lines that begin
 * with '#' are comments. */
int plant(const char *manifest, const char *root, struct error *err);

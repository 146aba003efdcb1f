#pragma once

#include "exporter/core/buf.h"

/* Appends a UUID made from a secret (a serial number, a machine id) by a hash: always the same for
 * the same purpose, another for another, and nobody can tell the secret from it. */
void uuid_derive(const char *purpose, const char *secret, struct buf *out);

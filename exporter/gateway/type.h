#pragma once

#include <stdbool.h>

#include "exporter/core/error.h"

/* Whether a body of that Content-Type (NULL: none was said) is families in protobuf, each behind
 * its length; all but protobuf is read as text. -EINVAL for another protobuf than we read. */
int gateway_type_parse(const char *content_type, bool *ret_protobuf, struct error *err);

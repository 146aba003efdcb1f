#pragma once

#include <stddef.h>

#include "exporter/core/arena.h"
#include "exporter/metrics/parse.h"
#include "exporter/push/update.h"

/* The body of a push to a group, as updates that set values. A zeroed struct is empty. */
struct gateway_body {
    struct push_update *updates;
    size_t n_updates, cap_updates;
    struct arena arena; /* what updates point to, beside the body itself */
    struct exposition_doc doc;
    bool has_timestamps; /* allowed in the format, but not in a push */
};

/* Whether a body of that Content-Type (NULL: none) is protobuf, else it is text. -EINVAL for
 * another message or encoding than delimited families. */
int gateway_type_parse(const char *content_type, bool *ret_protobuf, struct error *err);

/* Frees what it holds and leaves it empty. */
void gateway_body_finish(struct gateway_body *body);

/* One more update, zeroed but for index, time to live and operation; NULL: there are too many. */
struct push_update *gateway_body_add(struct gateway_body *body);

/* Words that: there are too many updates, or they take too much memory. -EFBIG. */
int gateway_body_fail_full(const struct gateway_body *body, struct error *err);

/* Takes labels of these names off all updates: a group's own win. */
void gateway_body_drop_labels(struct gateway_body *body, const struct label *labels, size_t n);

/* Read a body in the text format, which is overwritten and pointed into, or in protobuf with each
 * family behind its length. -EINVAL and -E2BIG name fault and place; -EEXIST: readable but
 * inconsistent, with something given twice or of another type; -EFBIG: it takes too much memory.
 * `body` is empty then. */
int gateway_text_read(char *data, size_t len, const struct exposition_limits *limits,
                      struct gateway_body *body, struct error *err);
int gateway_protobuf_read(const char *data, size_t len, const struct exposition_limits *limits,
                          struct gateway_body *body, struct error *err);

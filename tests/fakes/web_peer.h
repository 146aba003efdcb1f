#pragma once

#include "exporter/core/buf.h"

/* A server on loopback that says what it is told and remembers what it was asked. */
struct web_peer;

struct web_peer_answer {
    unsigned status;
    const char *body;
    const char *location; /* a header, or NULL */
    bool never;           /* no answer at all */
};

struct web_peer *web_peer_create(void);
void web_peer_destroy(struct web_peer *peer);

/* "http://127.0.0.1:12345". */
const char *web_peer_url(const struct web_peer *peer);

/* What it says from here on; the texts are borrowed. Between two requests only. */
void web_peer_say(struct web_peer *peer, struct web_peer_answer answer);

/* What it was asked last, "PUT /a?b\nHost: …\n…\n\nbody", headers sorted as they came. */
const char *web_peer_heard(const struct web_peer *peer);

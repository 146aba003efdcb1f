#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Sends messages to an AMQP broker, such as the RabbitMQ of a Waggle node, by librabbitmq. */

struct amqp_target {
    const char *host; /* NULL: no broker */
    int64_t port;
    const char *user, *password_file; /* the file is read for every connection */
    const char *exchange, *routing_key;
};

struct amqp_link;

/* Its heartbeat: the broker closes a link that is idle for longer. */
enum { AMQP_LINK_IDLE_S = 60 };

/* Connects and logs in. -ENOSYS if this program was built without librabbitmq. */
int amqp_link_open(const struct amqp_target *target, struct amqp_link **ret_link,
                   struct error *err);

/* Sends one JSON text; the broker keeps it once amqp_link_commit has returned 0. */
int amqp_link_send(struct amqp_link *link, const char *text, size_t len, struct error *err);

/* Waits until the broker has accepted all messages since the last call. An error also if it has
 * closed the connection. */
int amqp_link_commit(struct amqp_link *link, struct error *err);

void amqp_link_close(struct amqp_link *link); /* accepts NULL */

static inline void amqp_link_cleanup(struct amqp_link **link) {
    amqp_link_close(*link);
}
#define CLEANUP_AMQP_LINK CLEANUP(amqp_link_cleanup)

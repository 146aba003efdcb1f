#include "placement/control/amqp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_RABBITMQ

/* Where they are since 0.12. */
#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_tcp_socket.h>
#endif
#include <sys/time.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum { TIMEOUT_S = 5, CHANNEL = 1, MAX_FRAME = 128 << 10, MAX_PASSWORD = 4096, PERSISTENT = 2 };

struct amqp_link {
    const struct amqp_target *target;
    amqp_connection_state_t connection;
};

/* The broker's own words: "ACCESS_REFUSED - …". */
static int fail(const struct amqp_link *link, const char *what, const amqp_rpc_reply_t *reply,
                struct error *err) {
    const struct amqp_target *target = link->target;
    amqp_bytes_t words = amqp_empty_bytes;
    if (reply->reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
        /* The library's words are "a socket error occurred", without an errno. */
        words = amqp_cstring_bytes(reply->library_error == AMQP_STATUS_SOCKET_ERROR
                                       ? "connection refused or broken"
                                       : amqp_error_string2(reply->library_error));
    } else if (reply->reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
        words = ((const amqp_channel_close_t *)reply->reply.decoded)->reply_text;
    } else if (reply->reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
        words = ((const amqp_connection_close_t *)reply->reply.decoded)->reply_text;
    }
    return error_set(err, -EREMOTEIO, "AMQP broker %s:%d: %s: %.*s", target->host,
                     (int)target->port, what, (int)words.len, (const char *)words.bytes);
}

static int check_reply(const struct amqp_link *link, const char *what, amqp_rpc_reply_t reply,
                       struct error *err) {
    return reply.reply_type == AMQP_RESPONSE_NORMAL ? 0 : fail(link, what, &reply, err);
}

static int check_status(const struct amqp_link *link, const char *what, int status,
                        struct error *err) {
    amqp_rpc_reply_t reply = {.reply_type = status == AMQP_STATUS_OK
                                                ? AMQP_RESPONSE_NORMAL
                                                : AMQP_RESPONSE_LIBRARY_EXCEPTION,
                              .library_error = status};
    return check_reply(link, what, reply, err);
}

static int read_password(const struct amqp_target *target, struct buf *out, struct error *err) {
    if (target->password_file == NULL) {
        return 0;
    }
    int r = file_read_stored(target->password_file, MAX_PASSWORD, out, err);
    if (r == 0) {
        out->len = strcspn(buf_str(out), "\r\n");
        out->data[out->len] = '\0';
    }
    return r;
}

static int connect_and_login(struct amqp_link *link, struct error *err) {
    const struct amqp_target *target = link->target;
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    struct buf password CLEANUP_BUF = {0};
    amqp_socket_t *socket = amqp_tcp_socket_new(link->connection);
    int r = read_password(target, &password, err);
    if (r < 0) {
        return r;
    }
    amqp_set_handshake_timeout(link->connection, &timeout);
    amqp_set_rpc_timeout(link->connection, &timeout);
    r = check_status(link, "connect",
                     amqp_socket_open_noblock(socket, target->host, (int)target->port, &timeout),
                     err);
    r = r < 0 ? r
              : check_reply(link, "log in",
                            amqp_login(link->connection, "/", 0, MAX_FRAME, AMQP_LINK_IDLE_S,
                                       AMQP_SASL_METHOD_PLAIN, target->user, buf_str(&password)),
                            err);
    if (r < 0) {
        return r;
    }
    amqp_channel_open(link->connection, CHANNEL);
    r = check_reply(link, "open a channel", amqp_get_rpc_reply(link->connection), err);
    if (r < 0) {
        return r;
    }
    amqp_tx_select(link->connection, CHANNEL);
    return check_reply(link, "begin", amqp_get_rpc_reply(link->connection), err);
}

int amqp_link_open(const struct amqp_target *target, struct amqp_link **ret_link,
                   struct error *err) {
    struct amqp_link *link = mem_zalloc(1, sizeof(*link));
    link->target = target;
    link->connection = amqp_new_connection();
    int r = connect_and_login(link, err);
    if (r < 0) {
        amqp_link_close(link);
        return r;
    }
    *ret_link = link;
    return 0;
}

int amqp_link_send(struct amqp_link *link, const char *text, size_t len, struct error *err) {
    const struct amqp_target *target = link->target;
    const amqp_basic_properties_t properties = {
        ._flags =
            AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_USER_ID_FLAG,
        .content_type = amqp_cstring_bytes("application/json"),
        .delivery_mode = PERSISTENT,
        .user_id = amqp_cstring_bytes(target->user), /* Waggle's validator looks at it */
    };
    return check_status(link, "send",
                        amqp_basic_publish(link->connection, CHANNEL,
                                           amqp_cstring_bytes(target->exchange),
                                           amqp_cstring_bytes(target->routing_key), false, false,
                                           &properties, (amqp_bytes_t){len, (void *)text}),
                        err);
}

int amqp_link_commit(struct amqp_link *link, struct error *err) {
    amqp_maybe_release_buffers(link->connection); /* of earlier replies */
    amqp_tx_commit(link->connection, CHANNEL);
    return check_reply(link, "send", amqp_get_rpc_reply(link->connection), err);
}

void amqp_link_close(struct amqp_link *link) {
    if (link != NULL) {
        amqp_connection_close(link->connection, AMQP_REPLY_SUCCESS);
        amqp_destroy_connection(link->connection);
        free(link);
    }
}

#else

int amqp_link_open(const struct amqp_target *target, struct amqp_link **ret_link,
                   struct error *err) {
    (void)ret_link;
    return error_set(err, -ENOSYS, "AMQP broker %s: this program was built without librabbitmq",
                     target->host);
}

int amqp_link_send(struct amqp_link *link, const char *text, size_t len, struct error *err) {
    (void)link, (void)text, (void)len;
    return error_set(err, -ENOSYS, "no librabbitmq");
}

int amqp_link_commit(struct amqp_link *link, struct error *err) {
    (void)link;
    return error_set(err, -ENOSYS, "no librabbitmq");
}

void amqp_link_close(struct amqp_link *link) {
    (void)link;
}

#endif

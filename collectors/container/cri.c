#include "collectors/container/cri.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/protobuf.h"
#include "exporter/net/unix_socket.h"

enum { LITERAL_NOT_INDEXED = 0x00, MAX_SHORT_TEXT = 126 };

static uint32_t u32_at(const char *text) {
    const uint8_t *bytes = (const uint8_t *)text;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Length (24 bits), type (8), flags (8), a reserved bit, stream (31). */
int http2_frame_read(const char *text, size_t len, struct http2_frame *ret_frame) {
    if (len < HTTP2_HEAD_LEN) {
        return 0;
    }
    size_t content = u32_at(text) >> 8;
    if (content > HTTP2_MAX_LEN) {
        return -EPROTO;
    }
    if (len < HTTP2_HEAD_LEN + content) {
        return 0;
    }
    *ret_frame = (struct http2_frame){
        .type = (uint8_t)text[3],
        .flags = (uint8_t)text[4],
        .stream = u32_at(text + 5) & INT32_MAX,
        .data = text + HTTP2_HEAD_LEN,
        .len = content,
    };
    return (int)(HTTP2_HEAD_LEN + content);
}

int http2_frame_unpad(struct http2_frame *frame) {
    if ((frame->flags & HTTP2_PADDED) == 0) {
        return 0;
    }
    size_t padding = frame->len > 0 ? (size_t)(uint8_t)frame->data[0] + 1 : 1;
    if (padding > frame->len) {
        return -EPROTO;
    }
    frame->data++;
    frame->len -= padding;
    return 0;
}

uint32_t http2_frame_u32(const struct http2_frame *frame, size_t offset) {
    return frame->len >= offset + sizeof(uint32_t) ? u32_at(frame->data + offset) : 0;
}

void http2_u32_write(struct buf *out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        buf_add_char(out, (char)(value >> shift));
    }
}

void http2_frame_write(struct buf *out, const struct http2_frame *frame) {
    assert(frame->len <= HTTP2_MAX_LEN);
    http2_u32_write(out, (uint32_t)frame->len << 8 | frame->type);
    buf_add_char(out, (char)frame->flags);
    http2_u32_write(out, frame->stream);
    buf_add(out, frame->data, frame->len);
}

void http2_setting_write(struct buf *out, enum http2_setting setting, uint32_t value) {
    buf_add_char(out, 0);
    buf_add_char(out, (char)setting);
    http2_u32_write(out, value);
}

static void add_text(struct buf *out, const char *text) {
    size_t len = strlen(text);
    assert(len <= MAX_SHORT_TEXT);
    buf_add_char(out, (char)len); /* the highest bit would mean Huffman coding */
    buf_add(out, text, len);
}

void http2_header_write(struct buf *out, const char *name, const char *value) {
    buf_add_char(out, LITERAL_NOT_INDEXED);
    add_text(out, name);
    add_text(out, value);
}

/* Fields of the messages, by their numbers in api.proto. */
enum { LIST_ITEM = 1 };
enum { METADATA_NAME = 1, METADATA_NAMESPACE = 3 };
enum { IMAGE_NAME = 1, IMAGE_AS_SPECIFIED = 18 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };

/* The fields of a PodSandbox or a Container; 0: it has none. */
struct form {
    uint32_t id, sandbox_id, metadata, image, image_ref, state, labels;
    uint64_t ended; /* the state NOTREADY or EXITED */
    size_t name;    /* the field of struct container_info for the name in the metadata */
};

static const struct form pod_form = {
    .id = 1,
    .metadata = 2,
    .state = 3,
    .labels = 5,
    .ended = 1,
    .name = offsetof(struct container_info, pod),
};
static const struct form container_form = {
    .id = 1,
    .sandbox_id = 2,
    .metadata = 3,
    .image = 4,
    .image_ref = 5,
    .state = 6,
    .labels = 8,
    .ended = 2,
    .name = offsetof(struct container_info, container),
};

/* A text ends at the first NUL; an empty one counts as missing. */
static void take_text(struct protobuf bytes, char **field) {
    if (bytes.len > 0 && bytes.data[0] != '\0') {
        free(*field);
        *field = mem_strndup(bytes.data, bytes.len);
    }
}

/* The field that takes a text of a message. */
struct text_row {
    uint32_t number;
    char **field;
};

static int take_texts(struct protobuf message, const struct text_row *rows, size_t n_rows) {
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        for (size_t i = 0; i < n_rows; i++) {
            if (field.number == rows[i].number && field.wire == PROTOBUF_BYTES) {
                take_text(field.bytes, rows[i].field);
            }
        }
    }
    return r;
}

static int take_label(struct protobuf entry, container_label_patterns wanted,
                      struct container_info *info) {
    char *name CLEANUP_FREE = NULL;
    char *value CLEANUP_FREE = NULL;
    const struct text_row rows[] = {{MAP_KEY, &name}, {MAP_VALUE, &value}};
    int r = take_texts(entry, rows, ARRAY_LEN(rows));
    if (r == 0 && name != NULL && value != NULL) {
        container_info_label(info, wanted, CONTAINER_LABELS_ANYBODY, name, value);
    }
    return r;
}

/* The kubelet requests images by their digest; a name is preferred. */
static bool is_digest(const char *image) {
    return strncmp(image, "sha256:", strlen("sha256:")) == 0;
}

static int take_image(struct protobuf message, char **image) {
    char *name CLEANUP_FREE = NULL;
    char *specified CLEANUP_FREE = NULL;
    const struct text_row rows[] = {{IMAGE_NAME, &name}, {IMAGE_AS_SPECIFIED, &specified}};
    int r = take_texts(message, rows, ARRAY_LEN(rows));
    if (r < 0) {
        return r;
    }
    if (specified != NULL || (name != NULL && !is_digest(name))) {
        free(*image);
        *image = specified != NULL ? TAKE(specified) : TAKE(name);
    }
    return 0;
}

static int take_field(const struct form *form, const struct protobuf_field *field,
                      container_label_patterns wanted, struct container_info *info, bool *ended) {
    const uint32_t number = field->number;
    if (field->wire != PROTOBUF_BYTES) {
        if (field->wire == PROTOBUF_VARINT && number == form->state) {
            *ended = field->value == form->ended;
        }
        return 0;
    }
    if (number == form->metadata) {
        const struct text_row rows[] = {
            {METADATA_NAME, (char **)((char *)info + form->name)},
            {METADATA_NAMESPACE, &info->namespace}, /* of pods only */
        };
        return take_texts(field->bytes, rows, ARRAY_LEN(rows));
    }
    if (number == form->labels) {
        return take_label(field->bytes, wanted, info);
    }
    if (number == form->image) {
        return take_image(field->bytes, &info->image);
    }
    if (number == form->id) {
        take_text(field->bytes, &info->id);
    } else if (number == form->sandbox_id) {
        take_text(field->bytes, &info->sandbox_id);
    } else if (number == form->image_ref && info->image == NULL) {
        take_text(field->bytes, &info->image);
    }
    return 0;
}

static int take_item(struct protobuf message, container_label_patterns wanted,
                     const struct form *form, struct container_infos *infos) {
    struct container_info info CLEANUP_CONTAINER_INFO = {.sandbox = form == &pod_form};
    struct protobuf_field field;
    bool ended = false;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        r = take_field(form, &field, wanted, &info, &ended);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && !ended && info.id != NULL) {
        container_infos_add(infos, &info);
    }
    return r;
}

static int take_list(const char *data, size_t len, container_label_patterns wanted,
                     const struct form *form, struct container_infos *infos) {
    struct protobuf message = {.data = data, .len = len};
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        if (field.number == LIST_ITEM && field.wire == PROTOBUF_BYTES) {
            r = take_item(field.bytes, wanted, form, infos);
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

int cri_message_pods(const char *data, size_t len, container_label_patterns wanted,
                     struct container_infos *infos) {
    return take_list(data, len, wanted, &pod_form, infos);
}

int cri_message_containers(const char *data, size_t len, container_label_patterns wanted,
                           struct container_infos *infos) {
    return take_list(data, len, wanted, &container_form, infos);
}

/* With a window of this size no answer within the limit waits for a WINDOW_UPDATE. */
#define MAX_ANSWER_BYTES (32U << 20)
#define MAX_RECEIVED_BYTES (2U * CRI_MAX_CALLS * MAX_ANSWER_BYTES)
#define MAX_STEP_BYTES (4U << 20)

enum {
    READ_ROOM = 65536,
    MAX_OUT_BYTES = 65536, /* of acknowledgements that the peer does not read */
    MESSAGE_HEAD_LEN = 5,  /* a byte that is 1 if it is compressed, and its length */
    FIRST_WINDOW = 65535,
};

void cri_call_init(struct cri_call *call) {
    *call = (struct cri_call){.fd = -1};
}

void cri_call_finish(struct cri_call *call) {
    if (call->fd >= 0) {
        close(call->fd);
    }
    buf_finish(&call->out);
    buf_finish(&call->in);
    for (size_t i = 0; i < CRI_MAX_CALLS; i++) {
        buf_finish(&call->answers[i].text);
    }
    cri_call_init(call);
}

/* Streams that a client opens have odd numbers. */
static uint32_t stream_of(size_t i) {
    return (uint32_t)(2 * i + 1);
}

static struct cri_answer *answer_of(struct cri_call *call, uint32_t stream) {
    return stream % 2 == 1 && stream / 2 < call->n_answers ? &call->answers[stream / 2] : NULL;
}

static void write_frame(struct cri_call *call, enum http2_type type, int flags, uint32_t stream,
                        const struct buf *content) {
    const struct http2_frame frame = {
        .type = (uint8_t)type,
        .flags = (uint8_t)flags,
        .stream = stream,
        .data = buf_str(content),
        .len = content->len,
    };
    http2_frame_write(&call->out, &frame);
}

static void write_greeting(struct cri_call *call) {
    struct buf settings CLEANUP_BUF = {0};
    struct buf window CLEANUP_BUF = {0};
    buf_add_str(&call->out, HTTP2_PREFACE);
    http2_setting_write(&settings, HTTP2_HEADER_TABLE_SIZE, 0);
    http2_setting_write(&settings, HTTP2_ENABLE_PUSH, 0);
    http2_setting_write(&settings, HTTP2_INITIAL_WINDOW_SIZE, MAX_ANSWER_BYTES);
    write_frame(call, HTTP2_SETTINGS, 0, 0, &settings);
    http2_u32_write(&window, CRI_MAX_CALLS * MAX_ANSWER_BYTES - FIRST_WINDOW);
    write_frame(call, HTTP2_WINDOW_UPDATE, 0, 0, &window);
}

static void write_request(struct cri_call *call, uint32_t stream, const char *method) {
    const struct {
        const char *name;
        const char *value;
    } headers[] = {
        {":method", "POST"},         {":scheme", "http"}, {":path", method},
        {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"},
        {"user-agent", "waap"},
    };
    struct buf head CLEANUP_BUF = {0};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        http2_header_write(&head, headers[i].name, headers[i].value);
    }
    write_frame(call, HTTP2_HEADERS, HTTP2_END_HEADERS, stream, &head);
    struct buf message CLEANUP_BUF = {0};
    buf_add(&message, "\0\0\0\0\0", MESSAGE_HEAD_LEN); /* not compressed, empty */
    write_frame(call, HTTP2_DATA, HTTP2_END_STREAM, stream, &message);
}

int cri_call_begin(struct cri_call *call, const char *socket, const char *const *methods,
                   size_t n_methods, int64_t deadline_ns) {
    assert(n_methods <= CRI_MAX_CALLS);
    cri_call_finish(call);
    int fd CLEANUP_CLOSE = unix_socket_connect(socket);
    if (fd < 0) {
        return fd;
    }
    write_greeting(call);
    for (size_t i = 0; i < n_methods; i++) {
        write_request(call, stream_of(i), methods[i]);
    }
    call->fd = TAKE_FD(fd);
    call->n_answers = n_methods;
    call->deadline_ns = deadline_ns;
    return 0;
}

static int send_rest(struct cri_call *call) {
    int r = unix_socket_send(call->fd, &call->out, &call->n_sent);
    if (call->n_sent == call->out.len) {
        buf_reset(&call->out);
        call->n_sent = 0;
    }
    return r;
}

static int take_data(struct cri_call *call, struct http2_frame *frame) {
    struct cri_answer *answer = answer_of(call, frame->stream);
    int r = http2_frame_unpad(frame);
    if (r < 0 || answer == NULL) {
        return r;
    }
    if (answer->ended || answer->text.len + frame->len > MAX_ANSWER_BYTES) {
        return answer->ended ? -EPROTO : -EFBIG;
    }
    buf_add(&answer->text, frame->data, frame->len);
    return 0;
}

/* GOAWAY has the last stream that the peer will answer. */
static int take_goaway(const struct cri_call *call, const struct http2_frame *frame) {
    uint32_t last = http2_frame_u32(frame, 0) & INT32_MAX;
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!call->answers[i].ended && stream_of(i) > last) {
            return -EPROTO;
        }
    }
    return 0;
}

static int acknowledge(struct cri_call *call, const struct http2_frame *frame) {
    if ((frame->flags & HTTP2_ACK) != 0) {
        return 0;
    }
    struct buf content CLEANUP_BUF = {0};
    if (frame->type == HTTP2_PING) {
        buf_add(&content, frame->data, frame->len);
    }
    write_frame(call, (enum http2_type)frame->type, HTTP2_ACK, 0, &content);
    return call->out.len > MAX_OUT_BYTES ? -EPROTO : 0;
}

/* The headers are ignored: a call that failed has no message. */
static int take_frame(struct cri_call *call, struct http2_frame *frame) {
    struct cri_answer *answer = answer_of(call, frame->stream);
    int r = call->greeted || frame->type == HTTP2_SETTINGS ? 0 : -EPROTO;
    call->greeted = true;
    if (r == 0 && frame->type == HTTP2_DATA) {
        r = take_data(call, frame);
    } else if (r == 0 && frame->type == HTTP2_GOAWAY) {
        r = take_goaway(call, frame);
    } else if (r == 0 && (frame->type == HTTP2_PING || frame->type == HTTP2_SETTINGS)) {
        r = acknowledge(call, frame);
    } else if (r == 0 && frame->type == HTTP2_RST_STREAM && answer != NULL && !answer->ended) {
        r = -EPROTO;
    }
    bool may_end = frame->type == HTTP2_DATA || frame->type == HTTP2_HEADERS;
    if (answer != NULL && may_end && (frame->flags & HTTP2_END_STREAM) != 0) {
        answer->ended = true;
    }
    return r;
}

static int take_frames(struct cri_call *call) {
    struct http2_frame frame;
    size_t used = 0;
    int n;
    while ((n = http2_frame_read(call->in.data + used, call->in.len - used, &frame)) > 0) {
        int r = take_frame(call, &frame);
        if (r < 0) {
            return r;
        }
        used += (size_t)n;
    }
    if (used > 0) {
        memmove(call->in.data, call->in.data + used, call->in.len - used);
        buf_truncate(&call->in, call->in.len - used);
    }
    return n;
}

static bool all_ended(const struct cri_call *call) {
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!call->answers[i].ended) {
            return false;
        }
    }
    return true;
}

static int receive(struct cri_call *call) {
    size_t end = call->n_received + MAX_STEP_BYTES;
    while (!all_ended(call) && call->n_received < end) {
        int n = unix_socket_receive(call->fd, READ_ROOM, &call->in);
        if (n <= 0) {
            return n == 0 ? -EPIPE : n == -EAGAIN ? 0 : n;
        }
        call->n_received += (size_t)n;
        int r = call->n_received > MAX_RECEIVED_BYTES ? -EFBIG : take_frames(call);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* One complete message, not compressed. */
static bool is_message(const struct buf *text) {
    return text->len >= MESSAGE_HEAD_LEN && text->data[0] == 0 &&
           http2_frame_u32(&(struct http2_frame){.data = text->data, .len = text->len}, 1) ==
               text->len - MESSAGE_HEAD_LEN;
}

int cri_call_step(struct cri_call *call, int64_t now_ns) {
    int r = send_rest(call);
    r = r == 0 ? receive(call) : r;
    r = r == 0 ? send_rest(call) : r;
    if (r < 0) {
        return r;
    }
    if (!all_ended(call)) {
        return now_ns >= call->deadline_ns ? -ETIMEDOUT : 0;
    }
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!is_message(&call->answers[i].text)) {
            return -EPROTO;
        }
    }
    return 1;
}

const char *cri_call_answer(const struct cri_call *call, size_t i, size_t *ret_len) {
    const struct buf *text = &call->answers[i].text;
    *ret_len = text->len - MESSAGE_HEAD_LEN;
    return text->data + MESSAGE_HEAD_LEN;
}

#define ANSWER_NS (10 * CLOCK_NS_PER_SEC)
#define MIN_LIST_NS (CLOCK_NS_PER_SEC / 4)
#define MIN_RETRY_NS CLOCK_NS_PER_SEC
#define MAX_RETRY_NS (60 * CLOCK_NS_PER_SEC)

enum { CALL_PODS, CALL_CONTAINERS, N_CALLS };

/* Runtimes before 2022 have the second only; the messages are the same. */
static const char *const services[][N_CALLS] = {
    {"/runtime.v1.RuntimeService/ListPodSandbox", "/runtime.v1.RuntimeService/ListContainers"},
    {"/runtime.v1alpha2.RuntimeService/ListPodSandbox",
     "/runtime.v1alpha2.RuntimeService/ListContainers"},
};

struct cri_client {
    char **sockets;
    size_t n_sockets;
    container_label_patterns wanted;
    size_t way;        /* the socket and service in use */
    size_t n_failures; /* in a row */
    struct cri_call call;
    struct container_infos infos; /* sorted by id */
    unsigned generation;
    bool asked;
    int64_t next_ns; /* no call before then */
    int64_t retry_ns;
};

struct cri_client *cri_client_create(const char *rootfs, const char *const *sockets,
                                     size_t n_sockets, container_label_patterns wanted) {
    struct cri_client *client = mem_zalloc(1, sizeof(*client));
    cri_call_init(&client->call);
    client->wanted = wanted;
    client->retry_ns = MIN_RETRY_NS;
    client->sockets = mem_zalloc(n_sockets, sizeof(char *));
    client->n_sockets = n_sockets;
    for (size_t i = 0; i < n_sockets; i++) {
        client->sockets[i] = file_path_join(rootfs, sockets[i]);
    }
    return client;
}

void cri_client_destroy(struct cri_client *client) {
    if (client == NULL) {
        return;
    }
    for (size_t i = 0; i < client->n_sockets; i++) {
        free(client->sockets[i]);
    }
    free(client->sockets);
    cri_call_finish(&client->call);
    container_infos_finish(&client->infos);
    free(client);
}

static int compare(const void *a, const void *b) {
    return strcmp(((const struct container_info *)a)->id, ((const struct container_info *)b)->id);
}

static const struct container_info *find(const struct container_infos *infos, const char *id) {
    const struct container_info key = {.id = (char *)id};
    return infos->n_rows > 0
               ? bsearch(&key, infos->rows, infos->n_rows, sizeof(*infos->rows), compare)
               : NULL;
}

static void sort(struct container_infos *infos) {
    if (infos->n_rows > 1) {
        qsort(infos->rows, infos->n_rows, sizeof(*infos->rows), compare);
    }
}

/* Adds the pods' names and labels to their containers, and the pods to the list. */
static void join(struct container_infos *containers, struct container_infos *pods) {
    sort(pods);
    for (size_t i = 0; i < containers->n_rows; i++) {
        struct container_info *info = &containers->rows[i];
        const struct container_info *pod =
            info->sandbox_id != NULL ? find(pods, info->sandbox_id) : NULL;
        if (pod != NULL) {
            container_info_fill(info, pod);
        }
    }
    for (size_t i = 0; i < pods->n_rows; i++) {
        container_infos_add(containers, &pods->rows[i]);
    }
    sort(containers);
}

static int take_answers(struct cri_client *client) {
    struct container_infos pods CLEANUP_CONTAINER_INFOS = {0};
    struct container_infos containers CLEANUP_CONTAINER_INFOS = {0};
    size_t len;
    const char *text = cri_call_answer(&client->call, CALL_PODS, &len);
    int r = cri_message_pods(text, len, client->wanted, &pods);
    text = cri_call_answer(&client->call, CALL_CONTAINERS, &len);
    r = r == 0 ? cri_message_containers(text, len, client->wanted, &containers) : r;
    if (r < 0) {
        return r;
    }
    join(&containers, &pods);
    container_infos_finish(&client->infos);
    client->infos = containers;
    containers = (struct container_infos){0};
    client->generation++;
    return 0;
}

/* Tries every way once, then waits 1, 2, 4, … seconds. */
static void fail(struct cri_client *client, int64_t now_ns) {
    size_t n_ways = client->n_sockets * ARRAY_LEN(services);
    cri_call_finish(&client->call);
    client->way = (client->way + 1) % n_ways;
    if (++client->n_failures % n_ways == 0) {
        client->next_ns = now_ns + client->retry_ns;
        client->retry_ns =
            client->retry_ns < MAX_RETRY_NS / 2 ? 2 * client->retry_ns : MAX_RETRY_NS;
    }
}

static void begin(struct cri_client *client, int64_t now_ns) {
    while (now_ns >= client->next_ns) {
        const char *socket = client->sockets[client->way / ARRAY_LEN(services)];
        const char *const *methods = services[client->way % ARRAY_LEN(services)];
        if (cri_call_begin(&client->call, socket, methods, N_CALLS, now_ns + ANSWER_NS) == 0) {
            client->asked = false;
            return;
        }
        fail(client, now_ns);
    }
}

void cri_client_step(struct cri_client *client, int64_t now_ns) {
    if (client->call.fd < 0 && client->asked) {
        begin(client, now_ns);
    }
    if (client->call.fd < 0) {
        return;
    }
    int r = cri_call_step(&client->call, now_ns);
    if (r == 0) {
        return;
    }
    r = r > 0 ? take_answers(client) : r;
    if (r < 0) {
        client->asked = true;
        fail(client, now_ns);
        return;
    }
    cri_call_finish(&client->call);
    client->n_failures = 0;
    client->retry_ns = MIN_RETRY_NS;
    client->next_ns = now_ns + MIN_LIST_NS;
}

const struct container_info *cri_client_find(const struct cri_client *client, const char *id) {
    return find(&client->infos, id);
}

void cri_client_ask(struct cri_client *client) {
    client->asked = true;
}

unsigned cri_client_generation(const struct cri_client *client) {
    return client->generation;
}

#pragma once

#include <string.h>

#include "exporter/core/buf.h"

/* Answers of a container runtime, as protobuf; no text or message may be longer than 127 bytes. */

static inline void cri_add(struct buf *out, unsigned number, const char *data, size_t len) {
    buf_add_char(out, (char)(number << 3 | 2));
    if (number >= 16) { /* the key takes two bytes */
        out->data[out->len - 1] = (char)((number << 3 | 2) | 0x80);
        buf_add_char(out, (char)(number >> 4));
    }
    buf_add_char(out, (char)len);
    buf_add(out, data, len);
}

static inline void cri_add_text(struct buf *out, unsigned number, const char *text) {
    cri_add(out, number, text, strlen(text));
}

static inline void cri_add_number(struct buf *out, unsigned number, unsigned value) {
    buf_add_char(out, (char)(number << 3));
    buf_add_char(out, (char)value);
}

static inline void cri_add_message(struct buf *out, unsigned number, const struct buf *message) {
    cri_add(out, number, buf_str(message), message->len);
}

static inline void cri_add_label(struct buf *out, unsigned number, const char *name,
                                 const char *value) {
    struct buf entry CLEANUP_BUF = {0};
    cri_add_text(&entry, 1, name);
    cri_add_text(&entry, 2, value);
    cri_add_message(out, number, &entry);
}

/* A row of ListPodSandbox. */
static inline void cri_add_pod(struct buf *out, const char *id, const char *name, const char *job) {
    struct buf pod CLEANUP_BUF = {0};
    struct buf metadata CLEANUP_BUF = {0};
    cri_add_text(&pod, 1, id);
    cri_add_text(&metadata, 1, name);
    cri_add_text(&metadata, 3, "ses");
    cri_add_message(&pod, 2, &metadata);
    cri_add_label(&pod, 5, "job", job);
    cri_add_message(out, 1, &pod);
}

/* A row of ListContainers. */
static inline void cri_add_container(struct buf *out, const char *id, const char *sandbox_id,
                                     const char *name) {
    struct buf container CLEANUP_BUF = {0};
    struct buf metadata CLEANUP_BUF = {0};
    struct buf image CLEANUP_BUF = {0};
    cri_add_text(&container, 1, id);
    cri_add_text(&container, 2, sandbox_id);
    cri_add_text(&metadata, 1, name);
    cri_add_message(&container, 3, &metadata);
    cri_add_text(&image, 1, "waggle/app:1");
    cri_add_message(&container, 4, &image);
    cri_add_number(&container, 6, 1);
    cri_add_message(out, 1, &container);
}

#include <math.h>
#include <stdio.h>

#include "collectors/nvml/device.h"

/* NVLink: which links there are is found out at open; their traffic comes in one call. */

static const char *const error_kinds[] = {"replay", "recovery", "crc_flit", "crc_data"};

struct link {
    unsigned number;
    bool no_errors[ARRAY_LEN(error_kinds)];
    struct labels *labels;
    struct labels *error_labels[ARRAY_LEN(error_kinds)];
};

struct links {
    struct link links[NVML_MAX_LINKS];
    size_t n_links;
    bool no_traffic;
};

static void link_init(struct link *link, const struct nvml_device *device, unsigned number) {
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    *link = (struct link){
        .number = number,
        .labels = labels_with(device->labels, "link", text),
    };
    for (size_t i = 0; i < ARRAY_LEN(error_kinds); i++) {
        link->error_labels[i] = labels_with(link->labels, "kind", error_kinds[i]);
    }
}

static void links_close(void *state) {
    struct links *links = state;
    for (size_t i = 0; i < links->n_links; i++) {
        labels_destroy(links->links[i].labels);
        for (size_t j = 0; j < ARRAY_LEN(error_kinds); j++) {
            labels_destroy(links->links[i].error_labels[j]);
        }
    }
}

static void links_open(void *state, const struct nvml_device *device) {
    struct links *links = state;
    unsigned active;
    for (unsigned i = 0; i < NVML_MAX_LINKS; i++) {
        if (NVML_CALL(device->library->link_state, device->handle, i, &active) ==
            NVML_CODE_SUCCESS) {
            link_init(&links->links[links->n_links++], device, i);
        }
    }
}

static void collect_state(struct nvml_device *device, const struct link *link,
                          struct snapshot *out) {
    unsigned active = 0;
    unsigned code = device->library->link_state(device->handle, link->number, &active);
    if (nvml_device_check(device, code, NULL)) {
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_NVLINK_ACTIVE], link->labels, active,
                        1);
    }
}

static void collect_errors(struct nvml_device *device, struct link *link, struct snapshot *out) {
    for (unsigned i = 0; i < ARRAY_LEN(error_kinds); i++) {
        unsigned long long n = 0;
        unsigned code = link->no_errors[i] ? NVML_CODE_NOT_SUPPORTED
                                           : NVML_CALL(device->library->link_errors, device->handle,
                                                       link->number, i, &n);
        if (nvml_device_check(device, code, &link->no_errors[i])) {
            nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_NVLINK_ERRORS],
                            link->error_labels[i], (double)n, INFINITY);
        }
    }
}

static void collect_traffic(struct nvml_device *device, struct links *links, struct snapshot *out) {
    static const struct {
        unsigned field;
        enum nvml_metric metric;
    } ways[] = {
        {NVML_FIELD_NVLINK_TRANSMITTED, NVML_NVIDIA_NVLINK_TRANSMIT},
        {NVML_FIELD_NVLINK_RECEIVED, NVML_NVIDIA_NVLINK_RECEIVE},
    };
    struct nvml_field fields[NVML_MAX_LINKS * ARRAY_LEN(ways)] = {0};
    size_t n = links->n_links * ARRAY_LEN(ways);
    for (size_t i = 0; i < n; i++) {
        fields[i].field = ways[i % ARRAY_LEN(ways)].field;
        fields[i].scope = links->links[i / ARRAY_LEN(ways)].number;
    }
    unsigned code = NVML_CALL(device->library->fields, device->handle, (int)n, fields);
    if (!nvml_device_check(device, code, &links->no_traffic)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (fields[i].code == NVML_CODE_SUCCESS) {
            nvml_device_add(device, out, &nvml_descs[ways[i % ARRAY_LEN(ways)].metric],
                            links->links[i / ARRAY_LEN(ways)].labels,
                            nvml_read_number(fields[i].type, &fields[i].value) * 1024, INFINITY);
        }
    }
}

static void links_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct links *links = state;
    for (size_t i = 0; i < links->n_links && device->state == NVML_GOOD; i++) {
        collect_state(device, &links->links[i], out);
        collect_errors(device, &links->links[i], out);
    }
    if (links->n_links > 0 && !links->no_traffic && device->state == NVML_GOOD) {
        collect_traffic(device, links, out);
    }
}

const struct nvml_part nvml_link_part = {
    .state_size = sizeof(struct links),
    .open = links_open,
    .collect = links_collect,
    .close = links_close,
};

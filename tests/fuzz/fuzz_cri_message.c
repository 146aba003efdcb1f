/* Covers 20 % of collectors/container/cri.c. */
#include <assert.h>
#include <stdint.h>

#include "collectors/container/cri.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const all[] = {"*", NULL};

/* What a runtime answers to Kubernetes, read as either of the two lists. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct protobuf message = {.data = (const char *)data, .len = len};
    struct protobuf_field field;
    while (protobuf_next(&message, &field) > 0) {
        assert(field.number > 0 && message.len < len);
    }
    struct container_infos infos CLEANUP_CONTAINER_INFOS = {0};
    cri_message_pods((const char *)data, len, all, &infos);
    cri_message_containers((const char *)data, len, all, &infos);
    for (size_t i = 0; i < infos.n_rows; i++) {
        assert(infos.rows[i].id != NULL && infos.rows[i].id[0] != '\0');
    }
    return 0;
}

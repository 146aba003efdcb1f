/* Covers 70 % of collectors/container/info.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/container/info.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const all[] = {"*", NULL};

/* What a runtime says, read as each of the three things that it may be. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = mem_dup(data, len);
    struct container_infos infos CLEANUP_CONTAINER_INFOS = {0};
    if (container_json_list(text, len, all, &infos) == 0) {
        for (size_t i = 0; i < infos.n_rows; i++) {
            assert(infos.rows[i].id != NULL && infos.rows[i].id[0] != '\0');
        }
    }
    memcpy(text, data, len);
    struct container_info event CLEANUP_CONTAINER_INFO = {0};
    bool gone;
    if (container_json_event(text, len, all, &event, &gone) == 0) {
        assert(event.id != NULL);
    }
    memcpy(text, data, len);
    struct container_info bundle CLEANUP_CONTAINER_INFO = {0};
    if (container_json_bundle(text, len, all, &bundle) == 0) {
        assert(bundle.pod != NULL || bundle.container != NULL || bundle.sandbox);
    }
    return 0;
}

/* Covers collectors/jetson/files.c. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/board.h"
#include "collectors/jetson/files.h"
#include "collectors/jetson/pace.h"
#include "exporter/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void feed_buddyinfo(const char *text) {
    struct jetson_free_blocks blocks;
    if (jetson_buddyinfo_parse(text, &blocks) == 0) {
        assert(blocks.n_blocks > 0);
    }
}

static void feed_iram(const char *text) {
    double bytes;
    if (jetson_iram_parse(text, &bytes) == 0) {
        assert(bytes >= 0);
    }
}

static void feed_l4t(const char *text) {
    struct buf l4t CLEANUP_BUF = {0};
    jetson_l4t_parse(text, &l4t);
}

static void feed_meminfo(const char *text) {
    double info[MEMINFO_N_FIELDS];
    jetson_meminfo_parse(text, info);
    for (size_t i = 0; i < MEMINFO_N_FIELDS; i++) {
        assert(isnan(info[i]) || info[i] >= 0);
    }
}

static void feed_mode(const char *text) {
    struct buf name CLEANUP_BUF = {0};
    unsigned id = 0;
    jetson_mode_parse(text, &id);
    jetson_mode_name(text, id, &name);
}

static void feed_nvmap(const char *text) {
    struct jetson_nvmap_line line;
    double bytes;
    if (jetson_nvmap_parse(text, &line) == 0 && !line.total) {
        assert(line.process.len > 0 && line.process.text >= text &&
               line.process.text + line.process.len <= text + strlen(text));
    }
    if (jetson_nvmap_total(text, &bytes) == 0) {
        assert(bytes >= 0);
    }
}

static void feed_power(const char *text) {
    jetson_power_parse(text);
}

static void feed_zone(const char *text) {
    struct buf name CLEANUP_BUF = {0};
    jetson_zone_name(&name, text);
    assert(strlen(buf_str(&name)) <= strlen(text));
}

/* The first byte says which file, the rest is its text up to the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static void (*const feeds[])(const char *text) = {
        feed_buddyinfo, feed_iram,  feed_l4t,   feed_meminfo,
        feed_mode,      feed_nvmap, feed_power, feed_zone,
    };
    if (len == 0) {
        return 0;
    }
    tegra_soc_parse((const char *)data + 1, len - 1);
    char *text CLEANUP_FREE = strndup((const char *)data + 1, len - 1);
    if (text != NULL) {
        feeds[data[0] % ARRAY_LEN(feeds)](text);
    }
    return 0;
}

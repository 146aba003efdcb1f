#include "collectors/host/parse.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/host/part.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/scan.h"

const struct metric_desc host_thermal_metrics[] = {
    {"node_thermal_zone_temp", "Temperature of a thermal zone in degrees Celsius.", METRIC_GAUGE,
     NULL, "type, zone"},
    {0},
};

static const char zone_prefix[] = "thermal_zone";

struct zone {
    char *id; /* what follows "thermal_zone" */
    unsigned round;
    struct source_file file;
    struct labels *labels;
};

struct thermal {
    char *path;
    DIR *dir; /* NULL: to be opened by the next collection */
    struct zone *zones;
    size_t n_zones;
    size_t cap_zones;
    unsigned round;
};

int host_thermal_parse(const char *text, double *ret_celsius) {
    struct scan_word word;
    double value;
    if (!scan_word(&text, &word) || number_parse(word.text, word.len, &value) < 0) {
        return -EINVAL;
    }
    *ret_celsius = value / 1000;
    return 0;
}

/* A sensor that is switched off with what it measures (the GPU's, a modem's) refuses to be read. */
static bool zone_is_silent(int result) {
    static const int codes[] = {EINVAL, EAGAIN, ENODATA, ENODEV, ENXIO, EIO, EBUSY};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (result == -codes[i]) {
            return true;
        }
    }
    return source_file_absent(result);
}

static void zone_finish(struct zone *zone) {
    free(zone->id);
    source_file_finish(&zone->file);
    labels_destroy(zone->labels);
}

static int zone_init(struct zone *zone, const char *dir, const char *id, struct buf *scratch,
                     struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s%s/type", dir, zone_prefix, id);
    int r = file_read(buf_str(&path), scratch, err);
    if (r < 0) {
        return r;
    }
    struct buf type CLEANUP_BUF = {0};
    buf_add(&type, buf_str(scratch), strcspn(buf_str(scratch), "\n"));
    buf_reset(&path);
    buf_printf(&path, "%s%s/temp", zone_prefix, id);
    source_file_init(&zone->file, dir, buf_str(&path), NULL);
    zone->labels = labels_render("type", buf_str(&type), "zone", id);
    zone->id = mem_strdup(id);
    return 0;
}

static struct zone *find_zone(struct thermal *thermal, const char *id) {
    for (size_t i = 0; i < thermal->n_zones; i++) {
        if (strcmp(thermal->zones[i].id, id) == 0) {
            return &thermal->zones[i];
        }
    }
    return NULL;
}

static int see_zone(struct thermal *thermal, const char *id, struct buf *scratch,
                    struct error *err) {
    struct zone *zone = find_zone(thermal, id);
    if (zone == NULL) {
        ARRAY_GROW(&thermal->zones, &thermal->cap_zones, thermal->n_zones + 1);
        zone = &thermal->zones[thermal->n_zones];
        *zone = (struct zone){.file.fd = -1};
        int r = zone_init(zone, thermal->path, id, scratch, err);
        if (r < 0) {
            zone_finish(zone);
            return zone_is_silent(r) ? 0 : r;
        }
        thermal->n_zones++;
    }
    zone->round = thermal->round;
    return 0;
}

static int list_zones(struct thermal *thermal, struct buf *scratch, struct error *err) {
    if (thermal->dir == NULL) {
        thermal->dir = opendir(thermal->path);
    } else {
        rewinddir(thermal->dir);
    }
    if (thermal->dir == NULL) {
        return error_set(err, -errno, "open %s: %m", thermal->path);
    }
    int result = 0;
    for (struct dirent *entry; (entry = readdir(thermal->dir)) != NULL;) {
        if (strncmp(entry->d_name, zone_prefix, strlen(zone_prefix)) == 0) {
            const char *id = entry->d_name + strlen(zone_prefix);
            int r = see_zone(thermal, id, scratch, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    return result;
}

static void sweep(struct thermal *thermal) {
    size_t kept = 0;
    for (size_t i = 0; i < thermal->n_zones; i++) {
        if (thermal->zones[i].round == thermal->round) {
            thermal->zones[kept++] = thermal->zones[i];
        } else {
            zone_finish(&thermal->zones[i]);
        }
    }
    thermal->n_zones = kept;
}

static int read_zone(struct zone *zone, struct buf *scratch, struct snapshot *out,
                     struct error *err) {
    int r = source_file_read(&zone->file, scratch, err);
    if (r < 0) {
        return zone_is_silent(r) ? 0 : r;
    }
    double celsius;
    if (host_thermal_parse(buf_str(scratch), &celsius) < 0) {
        return error_set(err, -EINVAL, "%s:1: not understood: \"%.20s\"", zone->file.path,
                         buf_str(scratch));
    }
    snapshot_add(out, &host_thermal_metrics[0], zone->labels, celsius);
    return 0;
}

static int thermal_collect(void *state, struct buf *scratch, struct snapshot *out,
                           struct error *err) {
    struct thermal *thermal = state;
    thermal->round++;
    int result = list_zones(thermal, scratch, err);
    if (source_file_absent(result)) {
        result = 0;
    }
    sweep(thermal);
    for (size_t i = 0; i < thermal->n_zones; i++) {
        int r = read_zone(&thermal->zones[i], scratch, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

static void thermal_close(void *state) {
    struct thermal *thermal = state;
    for (size_t i = 0; i < thermal->n_zones; i++) {
        zone_finish(&thermal->zones[i]);
    }
    if (thermal->dir != NULL) {
        closedir(thermal->dir);
    }
    free(thermal->zones);
    free(thermal->path);
    free(thermal);
}

static void *thermal_open(const struct collector_env *env) {
    struct thermal *thermal = mem_zalloc(1, sizeof(*thermal));
    thermal->path = file_path_join(env->sysfs, "class/thermal");
    return thermal;
}

const struct host_part host_thermal_part = {
    .name = "thermal",
    .open = thermal_open,
    .collect = thermal_collect,
    .close = thermal_close,
};

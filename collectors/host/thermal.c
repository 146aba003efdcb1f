#include "collectors/host/parse.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/host/part.h"
#include "collectors/source/rows.h"
#include "collectors/source/source_file.h"
#include "exporter/core/file.h"
#include "exporter/core/scan.h"

const struct metric_desc host_thermal_metrics[] = {
    {"node_thermal_zone_temp", "Temperature of a thermal zone in degrees Celsius.", METRIC_GAUGE,
     NULL, "type, zone"},
    {0},
};

static const char zone_prefix[] = "thermal_zone";

struct zone {
    struct row row; /* what follows "thermal_zone" */
    struct source_file file;
    struct labels *labels; /* NULL: its type could not be read yet */
};

struct thermal {
    char *path;
    DIR *dir; /* NULL: to be opened by the next collection */
    struct rows zones;
};

int host_thermal_parse(const char *text, double *ret_celsius) {
    double value;
    if (!scan_double(&text, &value)) {
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

static void finish_zone(void *row) {
    struct zone *zone = row;
    source_file_finish(&zone->file);
    labels_destroy(zone->labels);
}

static int see_zone(struct thermal *thermal, const char *id, struct error *err) {
    struct zone *zone = rows_see(&thermal->zones, (struct scan_word){id, strlen(id)});
    if (zone->labels != NULL) {
        return 0;
    }
    struct buf path CLEANUP_BUF = {0}, type CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s%s/type", thermal->path, zone_prefix, id);
    int r = file_read(buf_str(&path), &type, err);
    if (r < 0) {
        return zone_is_silent(r) ? 0 : r;
    }
    buf_truncate(&type, strcspn(buf_str(&type), "\n"));
    buf_reset(&path);
    buf_printf(&path, "%s%s/temp", zone_prefix, id);
    source_file_init(&zone->file, thermal->path, buf_str(&path), NULL);
    zone->labels = labels_render("type", buf_str(&type), "zone", id);
    return 0;
}

static int list_zones(struct thermal *thermal, struct error *err) {
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
            int r = see_zone(thermal, id, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    return result;
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
    int result = list_zones(thermal, err);
    result = source_file_absent(result) ? 0 : result;
    rows_sweep(&thermal->zones);
    for (size_t i = 0; i < thermal->zones.n; i++) {
        struct zone *zone = (struct zone *)thermal->zones.all[i];
        if (zone->labels != NULL) {
            int r = read_zone(zone, scratch, out, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    return result;
}

static void thermal_close(void *state) {
    struct thermal *thermal = state;
    rows_finish(&thermal->zones);
    if (thermal->dir != NULL) {
        closedir(thermal->dir);
    }
    free(thermal->path);
}

static void thermal_open(void *state, const struct collector_env *env) {
    struct thermal *thermal = state;
    thermal->path = file_path_join(env->sysfs, "class/thermal");
    thermal->zones = (struct rows){sizeof(struct zone), finish_zone};
}

const struct host_part host_thermal_part = {
    .state_size = sizeof(struct thermal),
    .open = thermal_open,
    .collect = thermal_collect,
    .close = thermal_close,
};

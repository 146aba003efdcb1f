#include "collectors/jetson/rail_find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "collectors/source/source_file.h"
#include "exporter/core/file.h"

enum { NAME_SIZE = 32 };

/* How the files of one channel are called; "#" is its number. */
struct layout {
    int first, last;
    const char *name;
    const char *power; /* NULL: none */
    int scale;         /* to watts */
    const char *voltage;
    const char *current;
};

static const struct layout iio = {
    0, 2, "rail_name_#", "in_power#_input", -1000, "in_voltage#_input", "in_current#_input",
};
static const struct layout hwmon = {
    1, 3, "in#_label", NULL, 0, "in#_input", "curr#_input",
};
static const struct layout hwmon_single = {
    1, 1, "label", "power#_input", -1000000, "in#_input", "curr#_input",
};

static void files_finish(struct jetson_rail_files *files) {
    free(files->name);
    free(files->power);
    free(files->voltage);
    free(files->current);
}

void jetson_rail_list_finish(struct jetson_rail_list *list) {
    for (size_t i = 0; i < list->n_rails; i++) {
        files_finish(&list->rails[i]);
    }
    free(list->rails);
    *list = (struct jetson_rail_list){0};
}

static bool wanted(const struct jetson_rail_list *list, const char *name) {
    /* Channels without connection; the sum channel of newer drivers. */
    if (name[0] == '\0' || strcmp(name, "nc") == 0 || strncmp(name, "sum of", 6) == 0) {
        return false;
    }
    for (size_t i = 0; i < list->n_rails; i++) {
        if (strcmp(list->rails[i].name, name) == 0) {
            return false;
        }
    }
    return true;
}

/* The channel's number takes the place of '#'. */
static void file_name(char name[static NAME_SIZE], const char *pattern, int channel) {
    snprintf(name, NAME_SIZE, "%s", pattern);
    char *mark = strchr(name, '#');
    if (mark != NULL) {
        *mark = (char)('0' + channel);
    }
}

static char *file_path(const char *dir, const char *pattern, int channel) {
    char name[NAME_SIZE];
    file_name(name, pattern, channel);
    return file_path_join(dir, name);
}

static int add(struct jetson_rail_list *list, const char *dir, const struct layout *layout,
               int channel, char *name) {
    struct jetson_rail_files *rails =
        realloc(list->rails, (list->n_rails + 1) * sizeof(*list->rails));
    if (rails == NULL) {
        free(name);
        return -ENOMEM;
    }
    list->rails = rails;
    rails[list->n_rails] = (struct jetson_rail_files){
        .name = name,
        .power = layout->power != NULL ? file_path(dir, layout->power, channel) : NULL,
        .scale = layout->scale,
        .voltage = file_path(dir, layout->voltage, channel),
        .current = file_path(dir, layout->current, channel),
    };
    const struct jetson_rail_files *files = &rails[list->n_rails++];
    bool complete = files->voltage != NULL && files->current != NULL &&
                    (layout->power == NULL || files->power != NULL);
    return complete ? 0 : -ENOMEM;
}

static int add_chip(struct jetson_rail_list *list, const char *dir, const struct layout *layout) {
    int r = 0;
    for (int channel = layout->first; channel <= layout->last && r == 0; channel++) {
        char label[NAME_SIZE];
        file_name(label, layout->name, channel);
        char *name CLEANUP_FREE = source_file_text(dir, label);
        char *current CLEANUP_FREE = file_path(dir, layout->current, channel);
        if (name == NULL || current == NULL || access(current, F_OK) < 0) {
            continue;
        }
        jetson_lower(name);
        if (wanted(list, name)) {
            r = add(list, dir, layout, channel, TAKE(name));
        }
    }
    return r;
}

static int add_iio(struct jetson_rail_list *list, const char *device) {
    struct entries entries CLEANUP_ENTRIES = {0};
    int r = entries_init(&entries, device, "iio");
    for (size_t i = 0; i < entries.n_names && r == 0; i++) {
        char *dir CLEANUP_FREE = file_path_join(device, entries.names[i]);
        r = dir != NULL ? add_chip(list, dir, &iio) : -ENOMEM;
    }
    return r;
}

static int add_hwmon(struct jetson_rail_list *list, const char *device) {
    char *label CLEANUP_FREE = source_file_text(device, "label");
    return add_chip(list, device, label != NULL ? &hwmon_single : &hwmon);
}

/* Calls `found` for every device of a class whose name says that it is a power monitor. */
static int walk(struct jetson_rail_list *list, const char *sysfs, const char *class,
                int (*found)(struct jetson_rail_list *list, const char *device)) {
    char *path CLEANUP_FREE = file_path_join(sysfs, class);
    struct entries entries CLEANUP_ENTRIES = {0};
    int r = path != NULL ? entries_init(&entries, path, "") : -ENOMEM;
    for (size_t i = 0; i < entries.n_names && r == 0; i++) {
        char *device CLEANUP_FREE = file_path_join(path, entries.names[i]);
        char *name CLEANUP_FREE = device != NULL ? source_file_text(device, "name") : NULL;
        if (name != NULL && strncmp(name, "ina", 3) == 0) {
            r = found(list, device);
        }
    }
    return r;
}

int jetson_rails_find(const char *sysfs, struct jetson_rail_list *ret_list, struct error *err) {
    struct jetson_rail_list list CLEANUP_JETSON_RAIL_LIST = {0};
    int r = walk(&list, sysfs, "class/hwmon", add_hwmon);
    if (r == 0) {
        r = walk(&list, sysfs, "bus/i2c/devices", add_iio);
    }
    if (r < 0) {
        return error_set(err, r, "%s: out of memory", sysfs);
    }
    *ret_list = list;
    list = (struct jetson_rail_list){0};
    return 0;
}

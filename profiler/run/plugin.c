#include "profiler/run/plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knobs.h"
#include "exporter/channel/socket.h"
#include "exporter/core/buf.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/push/keeper.h"

struct run_plugin {
    struct push_keeper *keeper;
    struct push_store *store;
    struct knobs *knobs;
    struct push_socket *socket;
};

int run_plugin_create(struct loop *loop, struct config *config,
                      const struct collector *const *collectors, struct run_plugin **ret_plugin,
                      struct error *err) {
    struct run_plugin *plugin = mem_zalloc(1, sizeof(*plugin));
    int r = push_keeper_create(loop, config->settings, collectors, &plugin->keeper, err);
    if (r < 0) {
        free(plugin);
        return r;
    }
    plugin->store = push_keeper_store(plugin->keeper);
    plugin->knobs = knobs_create(plugin->store);
    plugin->socket =
        push_socket_create(loop, plugin->store, plugin->knobs, push_keeper_log(plugin->keeper));
    push_socket_configure(plugin->socket, config);
    *ret_plugin = plugin;
    return 0;
}

void run_plugin_destroy(struct run_plugin *plugin) {
    if (plugin == NULL) {
        return;
    }
    push_socket_destroy(plugin->socket);
    knobs_destroy(plugin->knobs);
    push_keeper_stop(plugin->keeper);
    push_keeper_destroy(plugin->keeper);
    free(plugin);
}

/* ---- samples ---- */

struct visit {
    struct run_plugin *plugin;
    struct run_record *record;
    struct run_live *live;
    const struct push_owner *first; /* its series have no label `plugin` */
    double frames[2];               /* fps_total, frames_total */
};

/* The label `plugin` of an owner; NULL for the first. */
static const char *plugin_label(const struct visit *visit, const struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(visit->plugin->store, owner);
    for (size_t i = 0; owner != visit->first && i < view.n_labels; i++) {
        if (strcmp(view.labels[i].name, "plugin") == 0) {
            return view.labels[i].value;
        }
    }
    return NULL;
}

static void put(const struct visit *visit, const struct push_series_view *series,
                const char *suffix, const char *le, enum record_type type, double value) {
    struct label *labels CLEANUP_FREE = mem_zalloc(series->n_labels + 2, sizeof(*labels));
    size_t n = series->n_labels;
    if (n > 0) {
        memcpy(labels, series->labels, n * sizeof(*labels));
    }
    const char *plugin = plugin_label(visit, series->owner);
    if (plugin != NULL) {
        labels[n++] = (struct label){"plugin", plugin};
    }
    if (le != NULL) {
        labels[n++] = (struct label){"le", le};
    }
    struct buf key CLEANUP_BUF = {0};
    buf_printf(&key, "app.%s%s", series->name, suffix);
    struct labels *rendered CLEANUP_LABELS = n > 0 ? labels_create(labels, n) : NULL;
    if (rendered != NULL) {
        buf_printf(&key, "{%.*s}", (int)rendered->len, rendered->text);
    }
    struct run_series row = {
        .key = buf_str(&key),
        .type = type,
        .unit = "",
        .help = series->help != NULL ? series->help : "",
    };
    /* The mean of a rate is known after a second; without it a short run would have no rate. */
    if (isnan(value)) {
        run_record_declare(visit->record, &row);
    }
    run_record_value(visit->record, &row, value);
}

static void put_histogram(const struct visit *visit, const struct push_series_view *series) {
    for (size_t i = 0; i <= series->n_bounds; i++) {
        char le[NUMBER_MAX_LEN + 1];
        size_t len =
            number_format_canonical(i < series->n_bounds ? series->bounds[i] : INFINITY, le);
        le[len] = '\0';
        put(visit, series, "", le, RECORD_BUCKET, series->values[i]);
    }
    put(visit, series, "_count", NULL, RECORD_COUNT, series->values[series->n_bounds]);
    put(visit, series, "_sum", NULL, RECORD_SUM, series->values[series->n_bounds + 1]);
}

static void note_frames(struct visit *visit, const struct push_series_view *series) {
    static const char *const names[] = {"fps_total", "frames_total"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(series->name, names[i]) == 0) {
            visit->frames[i] = (isnan(visit->frames[i]) ? 0 : visit->frames[i]) + series->values[0];
        }
    }
}

static bool visit_series(const struct push_series_view *series, void *context) {
    struct visit *visit = context;
    if (visit->record == NULL) {
        note_frames(visit, series);
        return true;
    }
    switch (series->type) {
    case PUSH_HISTOGRAM:
        put_histogram(visit, series);
        break;
    case PUSH_SUMMARY:
        break; /* the application chose its quantiles, and they cannot be aggregated */
    default:
        put(visit, series, "", NULL, series->type == PUSH_COUNTER ? RECORD_COUNTER : RECORD_GAUGE,
            series->values[0]);
        if (strcmp(series->name, "fps") == 0 && !isnan(series->values[0])) {
            visit->live->fps = series->values[0];
        }
        break;
    }
    return true;
}

static void put_knobs(const struct visit *visit, struct push_owner *owner) {
    const struct knobs_plugin *knobs = knobs_of(visit->plugin->knobs, owner);
    for (const struct knob *k = knobs != NULL ? knobs->knobs : NULL; k; k = k->next) {
        struct label label = {"param", k->spec.name};
        struct push_series_view series = {
            .owner = owner,
            .name = "param",
            .help = knobs_applied_metric.help,
            .labels = &label,
            .n_labels = 1,
        };
        if (k->applied.form == KNOB_NUMBER || k->applied.form == KNOB_TRUTH) {
            put(visit, &series, "", NULL, RECORD_GAUGE, k->applied.number);
        }
    }
}

void run_plugin_write(struct run_plugin *plugin, struct run_record *record, struct run_live *live) {
    struct visit visit = {
        .plugin = plugin,
        .record = record,
        .live = live,
        .first = push_store_next_owner(plugin->store, NULL),
    };
    push_store_visit(plugin->store, NULL, visit_series, &visit);
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(plugin->store, owner)) != NULL) {
        put_knobs(&visit, owner);
    }
}

double run_plugin_frames(struct run_plugin *plugin) {
    struct visit visit = {.plugin = plugin, .frames = {NAN, NAN}};
    push_store_visit(plugin->store, NULL, visit_series, &visit);
    return isnan(visit.frames[0]) ? visit.frames[1] : visit.frames[0];
}

/* ---- knobs ---- */

int run_plugin_turn(struct run_plugin *plugin, const struct run_knob *knobs, size_t n_knobs,
                    struct error *err) {
    int n_applied = 0;
    for (size_t i = 0; i < n_knobs; i++) {
        const struct knob_value *value = &knobs[i].value;
        bool applied = false;
        struct push_owner *owner = NULL;
        while ((owner = push_store_next_owner(plugin->store, owner)) != NULL) {
            struct knobs_plugin *declared = knobs_of(plugin->knobs, owner);
            struct knob *knob = declared != NULL ? knobs_find(declared, knobs[i].name) : NULL;
            bool asked = knob == NULL || knob_value_equal(&knob->requested, value);
            int r =
                asked ? 0
                      : knobs_request(plugin->knobs, owner, declared, knob, value, "waap run", err);
            if (r < 0) {
                return r;
            }
            applied = applied || (knob != NULL && asked && knob_value_equal(&knob->applied, value));
        }
        n_applied += applied;
    }
    return n_applied;
}

/* The knob of the first plugin that has declared it, or NULL. */
static const struct knob *find_knob(struct run_plugin *plugin, const char *name) {
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(plugin->store, owner)) != NULL) {
        const struct knobs_plugin *knobs = knobs_of(plugin->knobs, owner);
        const struct knob *knob = knobs != NULL ? knobs_find(knobs, name) : NULL;
        if (knob != NULL) {
            return knob;
        }
    }
    return NULL;
}

/* Whether the plugins have declared these knobs; else why the first is missing. */
static enum run_knobs check_declared(struct run_plugin *plugin, const struct run_knob *knobs,
                                     size_t n_knobs, struct buf *why) {
    struct buf names CLEANUP_BUF = {0};
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(plugin->store, owner)) != NULL) {
        const struct knobs_plugin *declared = knobs_of(plugin->knobs, owner);
        for (const struct knob *k = declared != NULL ? declared->knobs : NULL; k; k = k->next) {
            buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", k->spec.name);
        }
    }
    if (names.len == 0) {
        buf_add_str(why, "no plugin has declared a knob");
        return RUN_KNOBS_NONE;
    }
    for (size_t i = 0; i < n_knobs; i++) {
        if (find_knob(plugin, knobs[i].name) == NULL) {
            buf_printf(why, "no plugin has a knob %s, only %s", knobs[i].name, buf_str(&names));
            return RUN_KNOBS_OTHERS;
        }
    }
    return RUN_KNOBS_ALL;
}

enum run_knobs run_plugin_knobs(struct run_plugin *plugin, const struct run_knob *knobs,
                                size_t n_knobs, struct buf *why) {
    enum run_knobs state = check_declared(plugin, knobs, n_knobs, why);
    for (size_t i = 0; state == RUN_KNOBS_ALL && i < n_knobs && why->len == 0; i++) {
        const struct knob *found = find_knob(plugin, knobs[i].name);
        if (!knob_value_equal(&found->applied, &knobs[i].value)) {
            buf_printf(why, "%s is at ", knobs[i].name);
            knob_value_format(&found->applied, why);
        }
    }
    return state;
}

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/file.h"
#include "placement/predictor/gbt_private.h"

enum { MAX_FILE = 256 << 20 };

/* The attribute of the model that has our notes. */
static const char notes_key[] = "waap";

static const char *format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".json") == 0) {
        return "{\"format\": \"json\"}";
    }
    return dot != NULL && strcmp(dot, ".ubj") == 0 ? "{\"format\": \"ubj\"}" : NULL;
}

int gbt_save(struct gbt *gbt, const struct gbt_about *about, const char *path, struct error *err) {
    const struct gbt_library *library = gbt->library;
    const char *format = format_of(path);
    if (format == NULL) {
        return error_set(err, -EINVAL, "%s: a model's name ends in .json or .ubj", path);
    }
    gbt->about.simulated = about->simulated;
    snprintf(gbt->about.trained, sizeof(gbt->about.trained), "%s", about->trained);
    int major, minor, patch;
    library->version(&major, &minor, &patch);
    snprintf(gbt->about.version, sizeof(gbt->about.version), "%d.%d.%d", major, minor, patch);
    struct buf notes CLEANUP_BUF = {0};
    gbt_notes_write(gbt, &notes);
    uint64_t len;
    const char *data;
    if (notes.failed || library->set_attribute(gbt->booster, notes_key, buf_str(&notes)) < 0 ||
        library->save(gbt->booster, format, &len, &data) < 0) {
        return gbt_library_fail(library, err, path);
    }
    return file_replace(path, 0666, data, len, err);
}

static int check_version(const struct gbt *gbt, struct error *err) {
    int wrote[2], here[3];
    gbt->library->version(&here[0], &here[1], &here[2]);
    if (sscanf(gbt->about.version, "%d.%d", &wrote[0], &wrote[1]) != 2) {
        return error_set(err, -EINVAL, "it does not say which XGBoost wrote it");
    }
    if (wrote[0] > here[0] || (wrote[0] == here[0] && wrote[1] > here[1])) {
        return error_set(err, -EINVAL,
                         "written by XGBoost %s, which is later than this machine's %d.%d.%d",
                         gbt->about.version, here[0], here[1], here[2]);
    }
    return 0;
}

static int check_features(const struct gbt *gbt, const char *const *names, size_t n_features,
                          struct error *err) {
    uint64_t n;
    if (gbt->library->n_features(gbt->booster, &n) < 0) {
        return gbt_library_fail(gbt->library, err, "features");
    }
    if (gbt->n_features != n_features || n != n_features) {
        return error_set(err, -EINVAL, "a model of %zu features, not of %zu", gbt->n_features,
                         n_features);
    }
    for (size_t i = 0; i < n_features; i++) {
        if (strcmp(gbt->features[i].name, names[i]) != 0) {
            return error_set(err, -EINVAL, "its feature %zu is \"%s\", not \"%s\"", i + 1,
                             gbt->features[i].name, names[i]);
        }
    }
    return 0;
}

/* Versions add up in different orders, so the last bits may differ. */
static int verify_checks(struct gbt *gbt, struct error *err) {
    if (gbt->n_checks == 0) {
        return error_set(err, -EINVAL, "it has no rows to check it with");
    }
    for (size_t i = 0; i < gbt->n_checks; i++) {
        const struct gbt_check *check = &gbt->checks[i];
        float result;
        int r = gbt_predict(gbt, check->row, 1, &result, err);
        if (r < 0) {
            return r;
        }
        if (!(fabsf(result - check->expected) <= 1e-4F * fmaxf(1, fabsf(check->expected)))) {
            return error_set(err, -EINVAL,
                             "check row %zu gives %g here and %g where it was trained: damaged, or "
                             "of another XGBoost",
                             i + 1, (double)result, (double)check->expected);
        }
    }
    return 0;
}

static int read_notes(struct gbt *gbt, struct error *err) {
    const char *notes;
    int found = 0;
    if (gbt->library->get_attribute(gbt->booster, notes_key, &notes, &found) < 0) {
        return gbt_library_fail(gbt->library, err, "notes");
    }
    if (found == 0) {
        return error_set(err, -EINVAL, "not made by waap place train: it has no notes");
    }
    struct buf copy CLEANUP_BUF = {0};
    buf_add_str(&copy, notes);
    if (copy.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    return gbt_notes_read(copy.data, copy.len, gbt, err);
}

static int load(struct gbt *gbt, const struct buf *file, const char *const *names,
                size_t n_features, struct error *err) {
    if (gbt->library->create(NULL, 0, &gbt->booster) < 0 ||
        gbt->library->set_param(gbt->booster, "nthread", "1") < 0 ||
        gbt->library->load(gbt->booster, buf_str(file), file->len) < 0) {
        return gbt_library_fail(gbt->library, err, "not a model of XGBoost");
    }
    int r = read_notes(gbt, err);
    r = r < 0 ? r : check_version(gbt, err);
    r = r < 0 ? r : check_features(gbt, names, n_features, err);
    return r < 0 ? r : verify_checks(gbt, err);
}

int gbt_load(const char *path, const char *const *names, size_t n_features, struct gbt **ret_gbt,
             struct error *err) {
    struct buf file CLEANUP_BUF = {0};
    int r = file_read_stored(path, MAX_FILE, &file, err);
    if (r < 0) {
        return r;
    }
    /* What is neither JSON nor its binary form would be tried as formats that can crash. */
    if (file.len < 2 || file.data[0] != '{') {
        return error_set(err, -EINVAL, "%s: not a model of XGBoost", path);
    }
    struct gbt *gbt CLEANUP_GBT = gbt_create(err);
    if (gbt == NULL) {
        return -ENOENT;
    }
    struct error why = {0};
    r = load(gbt, &file, names, n_features, &why);
    if (r < 0) {
        return error_set(err, r, "%s: %s", path, why.text);
    }
    *ret_gbt = TAKE(gbt);
    return 0;
}

#include "placement/predictor/gbt_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"

/* Debian 12 and 13, then what follows. */
static const char *const names[] = {"libxgboost.so.0", "libxgboost.so.3", "libxgboost.so"};

static const struct {
    const char *name;
    size_t where;
} symbols[] = {
    {"XGBGetLastError", offsetof(struct gbt_library, last_error)},
    {"XGBSetGlobalConfig", offsetof(struct gbt_library, set_global_config)},
    {"XGBoostVersion", offsetof(struct gbt_library, version)},
    {"XGBoosterCreate", offsetof(struct gbt_library, create)},
    {"XGBoosterFree", offsetof(struct gbt_library, free)},
    {"XGBoosterGetAttr", offsetof(struct gbt_library, get_attribute)},
    {"XGBoosterGetNumFeature", offsetof(struct gbt_library, n_features)},
    {"XGBoosterLoadModelFromBuffer", offsetof(struct gbt_library, load)},
    {"XGBoosterPredictFromDMatrix", offsetof(struct gbt_library, predict_matrix)},
    {"XGBoosterSaveModelToBuffer", offsetof(struct gbt_library, save)},
    {"XGBoosterSetAttr", offsetof(struct gbt_library, set_attribute)},
    {"XGBoosterSetParam", offsetof(struct gbt_library, set_param)},
    {"XGBoosterSetStrFeatureInfo", offsetof(struct gbt_library, set_feature_texts)},
    {"XGBoosterUpdateOneIter", offsetof(struct gbt_library, update)},
    {"XGDMatrixCreateFromMat", offsetof(struct gbt_library, matrix_create)},
    {"XGDMatrixFree", offsetof(struct gbt_library, matrix_free)},
    {"XGDMatrixSetFloatInfo", offsetof(struct gbt_library, matrix_set_floats)},
};

static int find_symbols(void *dl, struct gbt_library *library, struct error *err) {
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(dl, symbols[i].name);
        if (symbol == NULL) {
            return error_set(err, -ENOSYS, "libxgboost has no %s: too old", symbols[i].name);
        }
        memcpy((char *)library + symbols[i].where, &symbol, sizeof(symbol));
    }
    return 0;
}

const struct gbt_library *gbt_library_get(struct error *err) {
    static struct gbt_library library;
    static bool loaded;
    if (loaded) {
        return &library;
    }
    /* Read by OpenMP's library while it is loaded. What we ask for takes milliseconds, threads that
     * wait for more of it would take memory and, by spinning, other people's time. */
    setenv("OMP_NUM_THREADS", "1", 0);
    void *dl = NULL;
    for (size_t i = 0; dl == NULL && i < ARRAY_LEN(names); i++) {
        dl = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (dl == NULL) {
        error_set(err, -ENOENT, "no libxgboost on this machine (Debian: apt install libxgboost0)");
        return NULL;
    }
    if (find_symbols(dl, &library, err) < 0) {
        dlclose(dl);
        return NULL;
    }
    library.set_global_config("{\"verbosity\": 0}");
    loaded = true;
    return &library;
}

/* "[14:02:11] ../src/learner.cc:1009: Check failed: …\nStack trace:\n  [bt] (0) …": the words
 * behind the place in the source, up to the trace. */
int gbt_library_fail(const struct gbt_library *library, struct error *err, const char *what) {
    const char *text = library->last_error();
    const char *end = strstr(text, "\nStack trace");
    size_t len = end != NULL ? (size_t)(end - text) : strlen(text);
    if (text[0] == '[') {
        const char *words = memmem(text, len, ": ", 2);
        if (words != NULL) {
            len -= (size_t)(words + 2 - text);
            text = words + 2;
        }
    }
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }
    const char *line = memchr(text, '\n', len);
    len = line != NULL ? (size_t)(line - text) : len;
    return error_set(err, -EINVAL, "%s: %.*s", what, (int)len, text);
}

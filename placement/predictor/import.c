#include "placement/predictor/import.h"

#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/settings/flags.h"

enum { MAX_FILE = 64 << 20, EXIT_USAGE = 2 };

/* What requests call the features. */
static const struct {
    const char *name;
    enum feature feature;
} aliases[] = {
    {"fc_layers", FEATURE_FC_LAYERS},
    {"model_input_size", FEATURE_READ_BYTES},
    {"model_output_size", FEATURE_WRITE_BYTES},
};

/* ---- the form of the file ---- */

struct model {
    json_t *root;
    json_t *trees, *names, *learner, *param, *booster; /* of the root */
    int version[3];
    size_t n_features;
};

static void model_finish(struct model *model) {
    json_decref(model->root);
}
#define CLEANUP_MODEL CLEANUP(model_finish)

static int check_kind(json_t *root, struct error *err) {
    const char *booster, *objective, *classes = "0", *targets = "1";
    json_error_t why;
    if (json_unpack_ex(root, &why, 0, "{s:{s:{s:s},s:{s:s},s:{s?s,s?s}}}", "learner",
                       "gradient_booster", "name", &booster, "objective", "name", &objective,
                       "learner_model_param", "num_class", &classes, "num_target", &targets) < 0) {
        return error_set(err, -EINVAL, "not a model in XGBoost's JSON: %s", why.text);
    }
    if (strcmp(booster, "gbtree") != 0) {
        return error_set(err, -EINVAL, "its booster is %s; expected gbtree", booster);
    }
    if (strcmp(objective, "reg:squarederror") != 0) {
        return error_set(err, -EINVAL, "its objective is %s; expected reg:squarederror", objective);
    }
    json_t *attributes = json_object_get(json_object_get(root, "learner"), "attributes");
    if (json_object_get(attributes, "waap") != NULL) {
        return error_set(err, -EINVAL, "made by waap place: use it as it is, with --predictor");
    }
    if (atoi(classes) > 1 || atoi(targets) > 1) {
        return error_set(err, -EINVAL, "it predicts several numbers; expected one");
    }
    return 0;
}

static int parse_model(const char *text, size_t len, struct model *model, struct error *err) {
    json_error_t why;
    const char *n_features;
    model->root = json_loadb(text, len, 0, &why);
    if (model->root == NULL) {
        return error_set(err, -EINVAL, "not JSON: line %d: %s", why.line, why.text);
    }
    int r = check_kind(model->root, err);
    if (r < 0) {
        return r;
    }
    int *version = model->version;
    if (json_unpack_ex(model->root, &why, 0, "{s:{s:{s:{s:o}},s:o,s?o},s:[i,i,i!]}", "learner",
                       "gradient_booster", "model", "trees", &model->trees, "learner_model_param",
                       &model->param, "feature_names", &model->names, "version", &version[0],
                       &version[1], &version[2]) < 0 ||
        json_unpack_ex(model->param, &why, 0, "{s:s}", "num_feature", &n_features) < 0) {
        return error_set(err, -EINVAL, "not a model in XGBoost's JSON: %s", why.text);
    }
    model->learner = json_object_get(model->root, "learner");
    model->booster = json_object_get(json_object_get(model->learner, "gradient_booster"), "model");
    model->n_features = strtoul(n_features, NULL, 10);
    if (model->n_features == 0 || model->n_features > GBT_MAX_FEATURES) {
        return error_set(err, -EINVAL, "it has %s features; expected 1 to %d", n_features,
                         GBT_MAX_FEATURES);
    }
    return 0;
}

/* ---- features ---- */

static int find_feature(const char *name, size_t len) {
    for (int i = 0; i < N_FEATURES; i++) {
        if (strlen(feature_names[i]) == len && memcmp(feature_names[i], name, len) == 0) {
            return i;
        }
    }
    return -1;
}

static int unknown_feature(const char *name, size_t len, struct error *err) {
    struct buf names CLEANUP_BUF = {0};
    for (int i = 0; i < N_FEATURES; i++) {
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", feature_names[i]);
    }
    return error_set(err, -EINVAL,
                     "feature \"%.*s\" is unknown: map it with --map=%.*s=OURS, which is one of %s",
                     (int)len, name, (int)len, name, buf_str(&names));
}

/* Reads "OURS" or "OURS:CENTER:SCALE". */
static int read_map(const char *text, struct import_column *column, struct error *err) {
    size_t len = strcspn(text, ":");
    int feature = find_feature(text, len);
    if (feature < 0) {
        return unknown_feature(text, len, err);
    }
    column->feature = (enum feature)feature;
    if (text[len] == '\0') {
        return 0;
    }
    const char *center = text + len + 1;
    size_t center_len = strcspn(center, ":");
    const char *scale = center + center_len + (center[center_len] == ':');
    if (number_parse(center, center_len, &column->center) < 0 ||
        number_parse(scale, strlen(scale), &column->scale) < 0 || !isfinite(column->center) ||
        !isfinite(column->scale) || column->scale <= 0) {
        return error_set(err, -EINVAL,
                         "--map=%s=%s: expected OURS:CENTER:SCALE with two numbers, the second "
                         "above 0",
                         column->name, text);
    }
    return 0;
}

/* What a column is by the options, by its name, or by an alias. */
static int map_column(const char *const *maps, struct import_column *column, struct error *err) {
    size_t len = strlen(column->name);
    column->scale = 1;
    for (; *maps != NULL; maps++) {
        if (strncmp(*maps, column->name, len) == 0 && (*maps)[len] == '=') {
            return read_map(*maps + len + 1, column, err);
        }
    }
    int feature = find_feature(column->name, len);
    for (size_t i = 0; feature < 0 && i < ARRAY_LEN(aliases); i++) {
        feature = strcmp(aliases[i].name, column->name) == 0 ? (int)aliases[i].feature : -1;
    }
    column->feature = (enum feature)feature;
    return feature < 0 ? unknown_feature(column->name, len, err) : 0;
}

static int check_maps(const char *const *maps, const struct import *import, struct error *err) {
    for (; *maps != NULL; maps++) {
        size_t i = 0, len = strcspn(*maps, "=");
        while (i < import->n_columns && (strncmp(import->columns[i].name, *maps, len) != 0 ||
                                         import->columns[i].name[len] != '\0')) {
            i++;
        }
        if (i == import->n_columns || (*maps)[len] == '\0') {
            return error_set(err, -EINVAL, "--map=%s: expected THEIRS=OURS; the model has no %.*s",
                             *maps, (int)len, *maps);
        }
    }
    return 0;
}

static int map_columns(const struct model *model, const char *const *maps, struct import *import,
                       struct error *err) {
    size_t n_names = json_array_size(model->names);
    if (n_names > 0 && n_names != model->n_features) {
        return error_set(err, -EINVAL, "it has %zu features, but %zu names", model->n_features,
                         n_names);
    }
    for (size_t i = 0; i < model->n_features; i++) {
        struct import_column *column = &import->columns[import->n_columns++];
        const char *name = json_string_value(json_array_get(model->names, i));
        struct buf text CLEANUP_BUF = {0};
        buf_printf(&text, "f%zu", i);
        name = n_names > 0 ? name : buf_str(&text);
        if (name == NULL || strlen(name) >= sizeof(column->name)) {
            return error_set(err, -EINVAL, "the name of feature %zu is no text or too long", i + 1);
        }
        memcpy(column->name, name, strlen(name) + 1);
    }
    int r = check_maps(maps, import, err);
    for (size_t i = 0; r == 0 && i < import->n_columns; i++) {
        r = map_column(maps, &import->columns[i], err);
    }
    return r;
}

/* ---- trees ---- */

/* The lists of a tree have one element for each node. */
struct tree {
    json_t *left, *right, *indices, *conditions, *types;
    json_t *parents; /* what follows from the children */
    size_t number, n_nodes;
    bool *seen; /* nodes that are a child already: XGBoost would follow a circle for ever */
};

static int fail(const struct tree *tree, size_t node, const char *what, struct error *err) {
    return error_set(err, -EINVAL, "tree %zu, node %zu: %s", tree->number, node, what);
}

static int check_child(const struct tree *tree, json_t *list, size_t node, struct error *err) {
    json_int_t child = json_integer_value(json_array_get(list, node));
    if (child <= 0 || (size_t)child >= tree->n_nodes || tree->seen[child]) {
        return fail(tree, node, "a child that is none of the tree's other nodes", err);
    }
    tree->seen[child] = true;
    json_array_set_new(tree->parents, (size_t)child, json_integer((json_int_t)node));
    return 0;
}

static int take_split(struct import *import, const struct tree *tree, size_t node,
                      struct error *err) {
    json_int_t index = json_integer_value(json_array_get(tree->indices, node));
    json_t *condition = json_array_get(tree->conditions, node);
    if (json_integer_value(json_array_get(tree->types, node)) != 0) {
        return fail(tree, node, "a categorical split; expected numbers only", err);
    }
    if (index < 0 || (size_t)index >= import->n_columns || !json_is_number(condition)) {
        return fail(tree, node, "a split by no feature, or at no number", err);
    }
    struct import_column *column = &import->columns[index];
    double at = json_number_value(condition) * column->scale + column->center;
    if (fabs(at) > (double)FLT_MAX) {
        return fail(tree, node, "a split at a number that does not fit a float", err);
    }
    column->low = column->n_splits > 0 ? fminf(column->low, (float)at) : (float)at;
    column->high = column->n_splits > 0 ? fmaxf(column->high, (float)at) : (float)at;
    column->n_splits++;
    import->n_splits++;
    json_array_set_new(tree->conditions, node, json_real(at));
    json_array_set_new(tree->indices, node, json_integer(column->feature));
    int r = check_child(tree, tree->left, node, err);
    return r < 0 ? r : check_child(tree, tree->right, node, err);
}

static json_t *numbers(size_t n, json_int_t first, json_int_t others) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(i == 0 ? first : others));
    }
    return list;
}

/* XGBoost believes the rest of a tree and finds memory by it, so nothing of it stays. */
static void set_rest(const struct tree *tree, json_t *json) {
    static const char *const empty[] = {"categories", "categories_nodes", "categories_segments",
                                        "categories_sizes"};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        json_object_set_new(json, empty[i], json_array());
    }
    json_object_set_new(json, "id", json_integer((json_int_t)tree->number));
    json_object_set_new(json, "parents", json_incref(tree->parents));
    json_object_set_new(json, "split_type", numbers(tree->n_nodes, 0, 0));
}

static int take_tree(struct import *import, json_t *json, struct error *err) {
    struct tree tree = {.number = import->n_trees++};
    json_error_t why;
    json_t *param;
    if (json_unpack_ex(json, &why, 0, "{s:o,s:o,s:o,s:o,s?o,s:o}", "left_children", &tree.left,
                       "right_children", &tree.right, "split_indices", &tree.indices,
                       "split_conditions", &tree.conditions, "split_type", &tree.types,
                       "tree_param", &param) < 0) {
        return error_set(err, -EINVAL, "tree %zu: %s", tree.number, why.text);
    }
    tree.n_nodes = json_array_size(tree.left);
    if (tree.n_nodes == 0 || json_array_size(tree.right) != tree.n_nodes ||
        json_array_size(tree.indices) != tree.n_nodes ||
        json_array_size(tree.conditions) != tree.n_nodes) {
        return error_set(err, -EINVAL, "tree %zu: its lists are empty, or differ in length",
                         tree.number);
    }
    bool *seen CLEANUP_FREE = mem_zalloc(tree.n_nodes, sizeof(*seen));
    json_auto_t *parents = numbers(tree.n_nodes, INT32_MAX, 0);
    tree.seen = seen;
    tree.parents = parents;
    for (size_t node = 0; node < tree.n_nodes; node++) {
        bool is_leaf = json_integer_value(json_array_get(tree.left, node)) == -1;
        int r = is_leaf ? 0 : take_split(import, &tree, node, err);
        if (r < 0) {
            return r;
        }
    }
    set_rest(&tree, json);
    return json_object_set_new(param, "num_feature", json_sprintf("%d", N_FEATURES));
}

/* Two columns with splits cannot be one of ours, such as those of a one-hot encoding. */
static int check_columns(const struct import *import, struct error *err) {
    const struct import_column *used[N_FEATURES] = {NULL};
    for (size_t i = 0; i < import->n_columns; i++) {
        const struct import_column *column = &import->columns[i];
        const struct import_column **of = &used[column->feature];
        if (column->n_splits > 0 && *of != NULL) {
            return error_set(err, -EINVAL,
                             "both \"%s\" and \"%s\", which its trees split on, are %s",
                             (*of)->name, column->name, feature_names[column->feature]);
        }
        *of = column->n_splits > 0 ? column : *of;
    }
    return 0;
}

static int take_trees(const struct model *model, struct import *import, struct error *err) {
    json_t *tree, *names = json_array(), *types = json_array();
    size_t i;
    int r = 0;
    for (i = 0; i < N_FEATURES; i++) {
        json_array_append_new(names, json_string(feature_names[i]));
        json_array_append_new(types, json_string("float"));
    }
    json_object_set_new(model->learner, "feature_names", names);
    json_object_set_new(model->learner, "feature_types", types);
    json_object_set_new(model->learner, "attributes", json_object());
    json_object_set_new(model->param, "num_feature", json_sprintf("%d", N_FEATURES));
    json_array_foreach(model->trees, i, tree) {
        r = r < 0 ? r : take_tree(import, tree, err);
    }
    json_object_set_new(model->booster, "tree_info", numbers(import->n_trees, 0, 0));
    json_object_set_new(json_object_get(model->booster, "gbtree_model_param"), "num_trees",
                        json_sprintf("%zu", import->n_trees));
    return r < 0 ? r : check_columns(import, err);
}

/* ---- notes ---- */

/* The training data are not known, but which devices are told apart. */
static void note_features(const struct import *import, struct gbt_notes *notes) {
    notes->n_features = N_FEATURES;
    for (size_t i = 0; i < N_FEATURES; i++) {
        struct gbt_feature *feature = &notes->features[i];
        *feature = (struct gbt_feature){.min = -FLT_MAX, .max = FLT_MAX};
        snprintf(feature->name, sizeof(feature->name), "%s", feature_names[i]);
    }
    for (size_t i = 0; i < import->n_columns; i++) {
        const struct import_column *column = &import->columns[i];
        if (column->feature == FEATURE_DEVICE && column->n_splits > 0) {
            notes->features[FEATURE_DEVICE].min =
                column->low > DEVICE_RASPBERRY ? DEVICE_RASPBERRY : DEVICE_OTHER;
        }
    }
}

/* Rows from all over the range of the splits, and a little beyond. */
static void note_checks(const struct import *import, struct gbt_notes *notes) {
    notes->n_checks = GBT_MAX_CHECKS;
    for (size_t i = 0; i < GBT_MAX_CHECKS; i++) {
        for (size_t k = 0; k < import->n_columns; k++) {
            const struct import_column *column = &import->columns[k];
            float share = (float)(i * (2 * k + 3) % GBT_MAX_CHECKS) / (GBT_MAX_CHECKS - 2);
            if (column->n_splits > 0) {
                notes->checks[i].row[column->feature] =
                    column->low + share * (column->high - column->low);
            }
        }
    }
}

int import_read(const char *text, size_t len, const char *const *maps, bool in_seconds,
                struct import *ret_import, struct gbt **ret_gbt, struct error *err) {
    struct model model CLEANUP_MODEL = {0};
    struct import import = {.n_columns = 0};
    int r = parse_model(text, len, &model, err);
    r = r < 0 ? r : map_columns(&model, maps, &import, err);
    r = r < 0 ? r : take_trees(&model, &import, err);
    if (r < 0) {
        return r;
    }
    struct gbt_notes notes = {.in_seconds = in_seconds};
    snprintf(notes.version, sizeof(notes.version), "%d.%d.%d", model.version[0], model.version[1],
             model.version[2]);
    note_features(&import, &notes);
    note_checks(&import, &notes);
    char *json CLEANUP_FREE = json_dumps(model.root, JSON_COMPACT);
    r = gbt_load_text(json, strlen(json), &notes, ret_gbt, err);
    if (r < 0) {
        return r;
    }
    *ret_import = import;
    return 0;
}

/* ---- the command ---- */

static const char usage[] =
    "usage: waap place import FILE.json --out=MODEL.json [flags]\n\n"
    "Makes a predictor of waap place from a model in XGBoost's JSON that was made elsewhere:\n"
    "booster.save_model(\"FILE.json\"). Its features are found by their names, which are those\n"
    "of the original's training data (waap place train --help), or of requests: fc_layers,\n"
    "model_input_size, model_output_size. Others need a --map; a file without names has f0,\n"
    "f1, and so on. If the model was trained with (value - CENTER) / SCALE, say so:\n"
    "    --map=f2=device_load_percent:50:20\n\n"
    "It shows which features the trees use, and between which values they split.\n\n";

static const struct option options[] = {
    {"log", OPTION_BOOL, .help = "It predicts the natural logarithm of the seconds"},
    {"map", OPTION_STRING, .repeatable = true,
     .help = "THEIRS=OURS or THEIRS=OURS:CENTER:SCALE; repeatable"},
    {"out", OPTION_STRING, .help = "File of the predictor, .json or .ubj"},
    {0},
};

static void print_columns(const struct import *import) {
    printf("%-26s %-26s %7s %12s %12s\n", "feature", "is", "splits", "from", "to");
    for (size_t i = 0; i < import->n_columns; i++) {
        const struct import_column *column = &import->columns[i];
        printf("%-26s %-26s %7zu", column->name, feature_names[column->feature], column->n_splits);
        if (column->n_splits > 0) {
            printf(" %12g %12g", (double)column->low, (double)column->high);
        }
        printf("\n");
    }
    fflush(stdout);
}

static void print_warnings(const struct import *import) {
    size_t n_splits[N_FEATURES] = {0};
    for (size_t i = 0; i < import->n_columns; i++) {
        n_splits[import->columns[i].feature] += import->columns[i].n_splits;
    }
    for (size_t i = 0; i < N_FEATURES; i++) {
        if (n_splits[i] == 0) {
            fprintf(stderr, "warning: its trees never split on %s%s\n", feature_names[i],
                    i == FEATURE_DEVICE ? ": all devices get the same prediction"
                    : i == FEATURE_LOAD ? ": a busy node gets the prediction of an idle one"
                                        : "");
        }
    }
}

static int import_file(const struct settings *settings, const char *path, struct error *err) {
    const char *out = settings_string(settings, "out");
    struct buf text CLEANUP_BUF = {0}, words CLEANUP_BUF = {0};
    struct gbt *gbt CLEANUP_GBT = NULL;
    struct import import;
    int r = file_read_stored(path, MAX_FILE, &text, err);
    if (r < 0) {
        return r;
    }
    r = import_read(buf_str(&text), text.len, settings_list(settings, "map"),
                    !settings_bool(settings, "log"), &import, &gbt, err);
    if (r < 0) {
        return error_set(err, r, "%s: %s", path, err->text);
    }
    const char *slash = strrchr(path, '/');
    buf_printf(&words, "%zu trees imported from %s", import.n_trees,
               slash != NULL ? slash + 1 : path);
    r = gbt_save(gbt, false, buf_str(&words), out, err);
    if (r == 0) {
        print_columns(&import);
        printf("%s: %s, with %zu splits\n", out, buf_str(&words), import.n_splits);
        fflush(stdout);
        print_warnings(&import);
    }
    return r;
}

int import_main(int argc, char **argv) {
    struct flags flags CLEANUP_FLAGS;
    struct error err;
    int code = flags_begin(&flags, usage, options, argc, argv);
    if (code >= 0) {
        return code;
    }
    bool has_out = settings_string(flags.settings, "out")[0] != '\0';
    if (flags.n_words != 1 || !has_out) {
        fprintf(stderr, "waap place import: expected %s (see --help)\n",
                has_out ? "one FILE.json" : "--out=MODEL.json");
        return EXIT_USAGE;
    }
    if (import_file(flags.settings, flags.words[0], &err) < 0) {
        fprintf(stderr, "waap place import: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

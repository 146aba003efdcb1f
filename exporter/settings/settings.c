#include "exporter/settings/settings.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

struct value {
    const struct option *option;
    enum settings_source source;
    int64_t number;
    char **texts; /* NULL-terminated: one text, or the items of a repeatable option */
    size_t n_texts;
};

struct settings {
    const struct option *const *options;
    size_t n_options;
    struct value *values; /* sorted by name: requests look settings up */
};

static void clear_texts(struct value *value) {
    for (size_t i = 0; i < value->n_texts; i++) {
        free(value->texts[i]);
    }
    value->n_texts = 0;
    if (value->texts != NULL) {
        value->texts[0] = NULL;
    }
}

static void add_text(struct value *value, const char *text) {
    value->texts = mem_resize(value->texts, value->n_texts + 2, sizeof(*value->texts));
    value->texts[value->n_texts++] = mem_strdup(text);
    value->texts[value->n_texts] = NULL;
}

static int compare_names(const void *a, const void *b) {
    const struct value *first = a, *second = b;
    return strcmp(first->option->name, second->option->name);
}

static struct value *find(const struct settings *settings, const char *name) {
    const struct value wanted = {.option = &(struct option){.name = name}};
    return bsearch(&wanted, settings->values, settings->n_options, sizeof(wanted), compare_names);
}

struct settings *settings_create(const struct option *const *options, size_t n_options) {
    struct settings *settings = mem_zalloc(1, sizeof(*settings));
    settings->options = options;
    settings->n_options = n_options;
    settings->values = mem_zalloc(n_options, sizeof(*settings->values));
    for (size_t i = 0; i < n_options; i++) {
        settings->values[i].option = options[i];
    }
    qsort(settings->values, n_options, sizeof(*settings->values), compare_names);
    for (size_t i = 0; i < n_options; i++) {
        const char *none = options[i]->type == OPTION_BOOL ? "false" : "";
        const char *text = options[i]->default_text != NULL ? options[i]->default_text : none;
        int r = settings_set(settings, options[i], SETTINGS_DEFAULT, text, NULL);
        assert(r == 0);
        (void)r;
    }
    return settings;
}

void settings_destroy(struct settings *settings) {
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; i < settings->n_options; i++) {
        clear_texts(&settings->values[i]);
        free(settings->values[i].texts);
    }
    free(settings->values);
    free(settings);
}

const struct option *settings_option(const struct settings *settings, const char *name) {
    const struct value *value = find(settings, name);
    return value != NULL ? value->option : NULL;
}

const struct option *const *settings_options(const struct settings *settings, size_t *ret_n) {
    *ret_n = settings->n_options;
    return settings->options;
}

int settings_set(struct settings *settings, const struct option *option,
                 enum settings_source source, const char *text, struct error *err) {
    struct value *value = find(settings, option->name);
    assert(value != NULL);
    bool empties = option->repeatable && text[0] == '\0';
    int64_t number = 0;
    int r = empties ? 0 : option_parse(option, text, &number, err);
    if (r < 0 || source < value->source) {
        return r;
    }
    if (empties || !option->repeatable || source > value->source) {
        clear_texts(value);
        value->number = 0;
    }
    value->source = source;
    value->number |= number; /* of a list, only choices have one */
    if (!empties) {
        add_text(value, text);
    }
    return 0;
}

static bool is_text(const struct option *option) {
    return option->type == OPTION_STRING || option->type == OPTION_REGEX || option->repeatable;
}

/* Numbers may be written in several ways: 60s is 1m. */
static bool equal_values(const struct value *a, const struct value *b) {
    if (!is_text(a->option)) {
        return a->number == b->number;
    }
    bool equal = a->n_texts == b->n_texts;
    for (size_t i = 0; equal && i < a->n_texts; i++) {
        equal = strcmp(a->texts[i], b->texts[i]) == 0;
    }
    return equal;
}

bool settings_equal(const struct settings *a, const struct settings *b, const char *prefix) {
    assert(a->n_options == b->n_options);
    for (size_t i = 0; i < a->n_options; i++) {
        if (strncmp(a->values[i].option->name, prefix, strlen(prefix)) == 0 &&
            !equal_values(&a->values[i], &b->values[i])) {
            return false;
        }
    }
    return true;
}

enum { TEXT_TYPES = 1U << OPTION_STRING | 1U << OPTION_REGEX | 1U << OPTION_CHOICE };

/* The value of an option whose type is one of `types` (bits) and which is a list or not. */
static const struct value *get(const struct settings *settings, const char *name, unsigned types,
                               bool repeatable) {
    const struct value *value = find(settings, name);
    if (value == NULL || (types & 1U << value->option->type) == 0 ||
        value->option->repeatable != repeatable) {
        fprintf(stderr, "settings: no option \"%s\" of that type\n", name);
        abort();
    }
    return value;
}

enum settings_source settings_origin(const struct settings *settings, const char *name) {
    const struct value *value = find(settings, name);
    assert(value != NULL);
    return value->source;
}

bool settings_bool(const struct settings *settings, const char *name) {
    return get(settings, name, 1U << OPTION_BOOL, false)->number != 0;
}

int64_t settings_int(const struct settings *settings, const char *name) {
    return get(settings, name, 1U << OPTION_INT | 1U << OPTION_SIZE, false)->number;
}

int64_t settings_duration_ms(const struct settings *settings, const char *name) {
    return get(settings, name, 1U << OPTION_DURATION, false)->number;
}

const char *settings_string(const struct settings *settings, const char *name) {
    return get(settings, name, TEXT_TYPES, false)->texts[0];
}

size_t settings_choice(const struct settings *settings, const char *name) {
    return (size_t)get(settings, name, 1U << OPTION_CHOICE, false)->number;
}

uint64_t settings_choices(const struct settings *settings, const char *name) {
    return (uint64_t)get(settings, name, 1U << OPTION_CHOICE, true)->number;
}

const char *const *settings_list(const struct settings *settings, const char *name) {
    static const char *const none[] = {NULL};
    const struct value *value = get(settings, name, TEXT_TYPES, true);
    return value->texts != NULL ? (const char *const *)value->texts : none;
}

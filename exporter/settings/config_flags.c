#include <string.h>

#include "exporter/settings/config_read.h"
#include "exporter/settings/suggest.h"

/* One argument taken apart: "--no-collector.host", "--log.level=warn". */
struct flag {
    const char *name; /* behind the dashes; ends at '=' or NUL */
    size_t name_len;
    const char *value; /* behind '=', or NULL */
    bool negated;      /* --no-… */
};

static struct flag split_flag(const char *arg) {
    const char *name = arg + strlen("--");
    const char *equals = strchr(name, '=');
    return (struct flag){
        .name = name,
        .name_len = equals != NULL ? (size_t)(equals - name) : strlen(name),
        .value = equals != NULL ? equals + 1 : NULL,
    };
}

static bool is_flag(const char *arg) {
    return strncmp(arg, "--", 2) == 0;
}

static bool strip_no(struct flag *flag) {
    if (flag->name_len <= strlen("no-") || strncmp(flag->name, "no-", strlen("no-")) != 0) {
        return false;
    }
    flag->name += strlen("no-");
    flag->name_len -= strlen("no-");
    flag->negated = true;
    return true;
}

static const struct config_entry *find_flag(const struct config_table *table, struct flag *flag) {
    const struct config_entry *entry = config_table_find(table, flag->name, flag->name_len);
    if (entry != NULL || !strip_no(flag)) {
        return entry;
    }
    entry = config_table_find(table, flag->name, flag->name_len);
    return entry != NULL && entry->option->type == OPTION_BOOL ? entry : NULL;
}

static void add_unknown_flag(const struct config_table *table, const struct flag *flag,
                             struct problems *problems) {
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, flag->name, flag->name_len);
    struct suggest suggest;
    suggest_init(&suggest, buf_str(&name));
    for (size_t i = 0; i < table->n_entries; i++) {
        const struct option *option = table->options[i];
        if (!flag->negated || option->type == OPTION_BOOL) {
            suggest_offer(&suggest, option->name, strlen(option->name));
        }
    }
    struct buf place CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    buf_printf(&place, "--%s%s", flag->negated ? "no-" : "", buf_str(&name));
    if (flag->negated && config_table_find(table, flag->name, flag->name_len) != NULL) {
        problems_add(problems, buf_str(&place), 0, 0,
                     "only switches can be negated, --%s takes a value", buf_str(&name));
        return;
    }
    buf_add_str(&text, "unknown flag");
    suggest_write(&suggest, flag->negated ? "--no-" : "--", &text);
    problems_add(problems, buf_str(&place), 0, 0, "%s", buf_str(&text));
}

static void set_flag(const struct option *option, const struct flag *flag, const char *value,
                     struct settings *settings, struct problems *problems) {
    struct buf place CLEANUP_BUF = {0};
    buf_printf(&place, "--%s%s", flag->negated ? "no-" : "", option->name);
    if (value == NULL) {
        struct buf expected CLEANUP_BUF = {0};
        option_describe(option, &expected);
        problems_add(problems, buf_str(&place), 0, 0, "expected %s, got nothing",
                     buf_str(&expected));
        return;
    }
    if (flag->negated && flag->value != NULL) {
        problems_add(problems, buf_str(&place), 0, 0, "takes no value, got \"%s\"", flag->value);
        return;
    }
    struct error err;
    if (settings_set(settings, option, SETTINGS_FLAG, value, &err) < 0) {
        problems_add(problems, buf_str(&place), 0, 0, "%s", err.text);
    }
}

void config_read_flags(const struct config_table *table, int argc, char *const *argv,
                       struct settings *settings, struct problems *problems) {
    for (int i = 1; i < argc; i++) {
        if (!is_flag(argv[i])) {
            problems_add(problems, argv[i], 0, 0, "unexpected argument, flags begin with --");
            continue;
        }
        struct flag flag = split_flag(argv[i]);
        const struct config_entry *entry = find_flag(table, &flag);
        if (entry == NULL) {
            add_unknown_flag(table, &flag, problems);
            continue;
        }
        const char *value = flag.value;
        if (value == NULL && entry->option->type == OPTION_BOOL) {
            value = flag.negated ? "false" : "true";
        } else if (value == NULL && entry->option->bare_text != NULL) {
            value = entry->option->bare_text;
        } else if (value == NULL && i + 1 < argc && !is_flag(argv[i + 1])) {
            value = argv[++i];
        }
        set_flag(entry->option, &flag, value, settings, problems);
    }
}

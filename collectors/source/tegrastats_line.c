#include "collectors/source/tegrastats_line.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "collectors/source/tegra_token.h"
#include "collectors/source/tegra_value.h"
#include "exporter/core/cleanup.h"

_Static_assert((int)TEGRASTATS_MAX_GPCS == (int)TEGRA_VALUE_MAX_CLOCKS, "clocks are copied whole");

struct parser {
    struct tegra_token rest;
    struct tegrastats_line *line;
    bool glued; /* something was there twice that a record has once */
};

/* Reads a field that begins with the token `name` and goes on in `parser->rest`; false if it looks
 * different. */
typedef bool field_rule(struct parser *parser, struct tegra_token name);

static bool next(struct parser *parser, struct tegra_token *ret_token) {
    return tegra_token_next(&parser->rest, ret_token);
}

static bool next_is(struct parser *parser, const char *text) {
    struct tegra_token token;
    return next(parser, &token) && tegra_token_equal(token, text);
}

static bool either(struct tegra_token token, const char *a, const char *b) {
    return tegra_token_equal(token, a) || tegra_token_equal(token, b);
}

/* Whether one of the entries, which all begin with their name, has that one. */
static bool has_name(const void *entries, size_t n_entries, size_t size, const char *name) {
    const char *entry = entries;
    for (size_t i = 0; i < n_entries; i++, entry += size) {
        if (strcmp(entry, name) == 0) {
            return true;
        }
    }
    return false;
}

/* "CPU@47.5C". A gated sensor prints -256, the zone PMIC a constant. */
static bool read_zone(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_zone zone;
    const char *at = memrchr(name.text, '@', name.len);
    if (at == NULL) {
        return false;
    }
    struct tegra_token value = {at + 1, (size_t)(name.text + name.len - at - 1)};
    name.len = (size_t)(at - name.text);
    if (!tegra_token_name(name, zone.name, sizeof(zone.name)) ||
        !tegra_value_celsius(value, &zone.celsius)) {
        return false;
    }
    if (zone.celsius <= -256 || strcmp(zone.name, "pmic") == 0 ||
        has_name(line->zones, line->n_zones, sizeof(zone), zone.name)) {
        return true;
    }
    if (line->n_zones == TEGRASTATS_MAX_ZONES) {
        return false;
    }
    line->zones[line->n_zones++] = zone;
    return true;
}

/* What stands in parentheses behind the sizes. */
static bool parse_memory_detail(struct tegra_token detail, struct tegrastats_memory *memory) {
    struct tegra_token word, value, more;
    if (!tegra_token_unwrap(&detail, "(", ")") || !tegra_token_next(&detail, &word) ||
        !tegra_token_next(&detail, &value) || tegra_token_next(&detail, &more)) {
        return false;
    }
    double number, unit;
    if (tegra_token_equal(word, "cached") && tegra_value_size(value, &number, &unit)) {
        memory->cached_bytes = number * unit;
        return true;
    }
    return tegra_token_equal(word, "lfb") &&
           tegra_value_blocks(value, &memory->free_block_bytes, &memory->free_blocks);
}

/* "1446/3957MB (lfb 458x4MB)", "0/252kB(lfb 252kB)" */
static bool read_memory(struct parser *parser, struct tegrastats_memory *memory) {
    struct tegra_token value, used, detail;
    double used_number, total_number, unit;
    if (!next(parser, &value)) {
        return false;
    }
    struct tegra_token attached = value;
    tegra_token_part(&attached, '(', &value);
    tegra_token_part(&value, '/', &used);
    if (value.text == NULL || !tegra_token_integer(used, &used_number) ||
        !tegra_value_size(value, &total_number, &unit)) {
        return false;
    }
    memory->used_bytes = used_number * unit;
    memory->total_bytes = total_number * unit;
    struct parser ahead = *parser;
    if (attached.text != NULL) {
        detail = (struct tegra_token){attached.text - 1, attached.len + 1};
        parser->line->n_unknown += !parse_memory_detail(detail, memory);
    } else if (next(&ahead, &detail) && parse_memory_detail(detail, memory)) {
        parser->rest = ahead.rest;
    }
    return true;
}

static bool read_memories(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    const struct {
        const char *name;
        struct tegrastats_memory *memory;
    } memories[] = {
        {"Carveout", &line->carveout},
        {"IRAM", &line->iram},
        {"RAM", &line->ram},
        {"SWAP", &line->swap},
    };
    for (size_t i = 0; i < ARRAY_LEN(memories); i++) {
        if (tegra_token_equal(name, memories[i].name)) {
            parser->glued = parser->glued || !isnan(memories[i].memory->total_bytes);
            return read_memory(parser, memories[i].memory);
        }
    }
    return false;
}

static bool parse_cpu(struct tegra_token text, double common_hertz, struct tegrastats_cpu *cpu) {
    *cpu = (struct tegrastats_cpu){.online = NAN, .load_ratio = NAN, .frequency_hertz = NAN};
    if (tegra_token_equal(text, "off")) {
        cpu->online = 0;
        return true;
    }
    struct tegra_token load;
    double ratio;
    double hertz = common_hertz;
    tegra_token_part(&text, '@', &load);
    if (!tegra_value_percent(load, &ratio) ||
        (text.text != NULL && !tegra_value_megahertz(text, &hertz))) {
        return false;
    }
    *cpu = (struct tegrastats_cpu){.online = 1, .load_ratio = ratio, .frequency_hertz = hertz};
    return true;
}

/* "CPU [2%@345,off,0%@345]", "cpu [0%,1%]@102" */
static bool read_cpus(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegra_token clock, list, element;
    double hertz = NAN;
    if (!either(name, "CPU", "cpu") || !next(parser, &clock) || !tegra_token_skip(&clock, "[")) {
        return false;
    }
    tegra_token_part(&clock, ']', &list);
    if (clock.text == NULL || (clock.len > 0 && (!tegra_token_skip(&clock, "@") ||
                                                 !tegra_value_megahertz(clock, &hertz)))) {
        return false;
    }
    parser->glued = parser->glued || line->n_cpus > 0;
    while (list.len > 0 && tegra_token_part(&list, ',', &element)) {
        if (line->n_cpus == TEGRASTATS_MAX_CPUS) {
            line->n_unknown++;
        } else {
            line->n_unknown += !parse_cpu(element, hertz, &line->cpus[line->n_cpus++]);
        }
    }
    return true;
}

static bool read_reading(struct parser *parser, struct tegra_reading *ret_reading) {
    struct tegra_token value;
    if (!next(parser, &value) || !tegra_value_reading(value, ret_reading)) {
        return false;
    }
    parser->line->n_unknown += ret_reading->n_unknown;
    return true;
}

/* fmax passes over NAN. */
static double fastest(const struct tegra_reading *reading) {
    double hertz = NAN;
    for (size_t i = 0; i < reading->n_clocks; i++) {
        hertz = fmax(hertz, reading->clock_hertz[i]);
    }
    return hertz;
}

static bool read_gpu(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegra_reading reading;
    if (!either(name, "GR3D", "GR3D_FREQ") || !read_reading(parser, &reading)) {
        return false;
    }
    line->gpu_load_ratio = reading.load_ratio;
    line->gpu_frequency_hertz = fastest(&reading);
    line->n_gpcs = reading.n_clocks;
    memcpy(line->gpc_frequency_hertz, reading.clock_hertz, sizeof(line->gpc_frequency_hertz));
    return true;
}

/* Orin with L4T 34 and 35: the same load once more, and the clock of the second cluster, which is 0
 * where there is none or it cannot be read. */
static bool read_second_gpc(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegra_reading reading;
    if (!tegra_token_equal(name, "GR3D2_FREQ") || !read_reading(parser, &reading)) {
        return false;
    }
    double hertz = fastest(&reading);
    if (line->n_gpcs == 1 && hertz > 0) {
        line->gpc_frequency_hertz[line->n_gpcs++] = hertz;
        line->gpu_frequency_hertz = fmax(line->gpu_frequency_hertz, hertz);
    }
    return true;
}

/* The load is relative to the clock: without root the clock is missing and the load always 0. */
static bool read_emc(struct parser *parser, struct tegra_token name) {
    struct tegra_reading reading;
    if (!either(name, "EMC", "EMC_FREQ") || !read_reading(parser, &reading)) {
        return false;
    }
    double hertz = fastest(&reading);
    parser->line->emc_frequency_hertz = hertz;
    parser->line->emc_load_ratio = hertz > 0 ? reading.load_ratio : NAN;
    return true;
}

/* "MTS fg 1% bg 8%" */
static bool read_mts(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegra_token foreground, background;
    if (!tegra_token_equal(name, "MTS") || !next_is(parser, "fg") || !next(parser, &foreground) ||
        !next_is(parser, "bg") || !next(parser, &background)) {
        return false;
    }
    line->n_unknown += !tegra_value_percent(foreground, &line->mts_foreground_ratio);
    line->n_unknown += !tegra_value_percent(background, &line->mts_background_ratio);
    return true;
}

/* "EDP limit 1912" */
static bool read_edp(struct parser *parser, struct tegra_token name) {
    struct tegra_token value;
    return tegra_token_equal(name, "EDP") && next_is(parser, "limit") && next(parser, &value) &&
           tegra_value_megahertz(value, &parser->line->edp_limit_hertz);
}

static bool read_throttle(struct parser *parser, struct tegra_token name) {
    struct tegra_token value;
    return tegra_token_equal(name, "throttle") && next(parser, &value) &&
           tegra_token_integer(value, &parser->line->throttle_events);
}

/* "VDD_IN 5299mW/5299mW". Channels that are not connected all have the name NC. */
static bool read_rail(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_rail rail;
    struct tegra_token value;
    if (!tegra_token_name(name, rail.name, sizeof(rail.name)) || !next(parser, &value) ||
        !tegra_value_power(value, &rail.watts, &rail.average_watts)) {
        return false;
    }
    if (strcmp(rail.name, "nc") == 0 ||
        has_name(line->rails, line->n_rails, sizeof(rail), rail.name)) {
        return true;
    }
    if (line->n_rails == TEGRASTATS_MAX_RAILS) {
        return false;
    }
    line->rails[line->n_rails++] = rail;
    return true;
}

/* One engine has had several names. */
static bool engine_name(struct tegra_token token, char name[static TEGRASTATS_NAME_SIZE]) {
    static const struct {
        const char *printed;
        const char *name;
    } aliases[] = {
        {"msenc", "nvenc0"},
        {"nvdec", "nvdec0"},
        {"nvenc", "nvenc0"},
        {"nvjpg", "nvjpg0"},
    };
    tegra_token_chop(&token, "_FREQ");
    if (!tegra_token_name(token, name, TEGRASTATS_NAME_SIZE)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(name, aliases[i].printed) == 0) {
            memcpy(name, aliases[i].name, strlen(aliases[i].name) + 1);
            break;
        }
    }
    return true;
}

static bool read_engine(struct parser *parser, struct tegra_token name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_engine engine;
    struct tegra_reading reading;
    if (!engine_name(name, engine.name) || !read_reading(parser, &reading)) {
        return false;
    }
    if (has_name(line->engines, line->n_engines, sizeof(engine), engine.name)) {
        return true;
    }
    if (line->n_engines == TEGRASTATS_MAX_ENGINES) {
        return false;
    }
    engine.load_ratio = reading.load_ratio;
    engine.frequency_hertz = fastest(&reading);
    engine.active = reading.off ? 0 : NAN;
    if (!isnan(engine.frequency_hertz)) {
        engine.active = engine.frequency_hertz > 0;
    }
    line->engines[line->n_engines++] = engine;
    return true;
}

/* The first that fits counts: "CPU@45C" is a zone, "CPU [12%@1190]" are the cores, "CPU 466/466" is
 * a rail; what is a name and a reading otherwise is an engine. */
static field_rule *const rules[] = {
    read_zone, read_memories, read_cpus,     read_gpu,  read_second_gpc, read_emc,
    read_mts,  read_edp,      read_throttle, read_rail, read_engine,
};

static void read_field(struct parser *parser, struct tegra_token name) {
    struct tegra_token behind = parser->rest;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        parser->rest = behind;
        if (rules[i](parser, name)) {
            return;
        }
    }
    parser->rest = behind;
    parser->line->n_unknown++;
}

/* `shape` has a 0 for every digit. */
static bool has_shape(struct tegra_token token, const char *shape) {
    bool equal = token.len == strlen(shape);
    for (size_t i = 0; i < token.len && equal; i++) {
        bool digit = token.text[i] >= '0' && token.text[i] <= '9';
        equal = shape[i] == '0' ? digit : token.text[i] == shape[i];
    }
    return equal;
}

/* "[number] [MM-DD-YYYY HH:MM:SS] RAM 1446/3957MB": local time without a zone, of no use. */
static bool read_head(struct parser *parser) {
    struct tegra_token token;
    double number;
    if (!next(parser, &token) || (tegra_token_integer(token, &number) && !next(parser, &token))) {
        return false;
    }
    if (has_shape(token, "00-00-0000") &&
        (!next(parser, &token) || !has_shape(token, "00:00:00") || !next(parser, &token))) {
        return false;
    }
    return tegra_token_equal(token, "RAM") && read_memory(parser, &parser->line->ram);
}

static void clear(struct tegrastats_line *line) {
    const struct tegrastats_memory no_memory = {NAN, NAN, NAN, NAN, NAN};
    *line = (struct tegrastats_line){
        .ram = no_memory,
        .swap = no_memory,
        .iram = no_memory,
        .carveout = no_memory,
        .emc_load_ratio = NAN,
        .emc_frequency_hertz = NAN,
        .gpu_load_ratio = NAN,
        .gpu_frequency_hertz = NAN,
        .mts_foreground_ratio = NAN,
        .mts_background_ratio = NAN,
        .edp_limit_hertz = NAN,
        .throttle_events = NAN,
    };
}

int tegrastats_line_parse(const char *text, size_t len, struct tegrastats_line *ret_line) {
    struct parser parser = {.rest = {text, len}, .line = ret_line};
    struct tegra_token token;
    clear(ret_line);
    if (!read_head(&parser)) {
        return -EINVAL;
    }
    while (next(&parser, &token)) {
        read_field(&parser, token);
    }
    return parser.glued ? -EINVAL : 0;
}

#include "collectors/source/tegrastats_line.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/number.h"
#include "exporter/core/scan.h"

/* A reading of an engine: "off", "716", "4%", "@1600", "4%@1600", "4%@[305,305]",
 * "[0%,0%]@1215". */
struct reading {
    bool off;
    double load_ratio; /* NAN: unknown. Of several cores of an engine it is the mean */
    size_t n_clocks;
    double clock_hertz[TEGRASTATS_MAX_GPCS]; /* NAN: not understood */
    size_t n_unknown;                        /* clocks not understood, or too many */
};

/* ---- tokens: pieces of the line, not copied; any byte may occur in one, NUL too ---- */

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Behind the closing parenthesis. If another one opens before it, the line is damaged, and the
 * parenthesis counts as any other character. */
static const char *skip_parenthesis(const char *at, const char *end) {
    for (const char *closing = at + 1; closing < end && *closing != '('; closing++) {
        if (*closing == ')') {
            return closing + 1;
        }
    }
    return at + 1;
}

/* Takes the next token off `rest`; blanks inside of parentheses belong to a token ("(lfb 7x4MB)");
 * false at the end. */
static bool token_next(struct scan_word *rest, struct scan_word *ret_token) {
    const char *at = rest->text;
    const char *end = at + rest->len;
    while (at < end && is_blank(*at)) {
        at++;
    }
    const char *begin = at;
    while (at < end && !is_blank(*at)) {
        at = *at == '(' ? skip_parenthesis(at, end) : at + 1;
    }
    *rest = (struct scan_word){.text = at, .len = (size_t)(end - at)};
    *ret_token = (struct scan_word){.text = begin, .len = (size_t)(at - begin)};
    return at > begin;
}

/* Takes the text up to the next `separator` off `rest`, or all of it; false once that is taken.
 * "a,,b" has three parts, "" has one. */
static bool token_part(struct scan_word *rest, char separator, struct scan_word *ret_part) {
    if (rest->text == NULL) {
        return false;
    }
    *ret_part = *rest;
    const char *found = memchr(rest->text, separator, rest->len);
    if (found == NULL) {
        *rest = (struct scan_word){0};
        return true;
    }
    ret_part->len = (size_t)(found - rest->text);
    rest->text = found + 1;
    rest->len -= ret_part->len + 1;
    return true;
}

/* Shorten `token` and return true if it begins or ends with `text`. */
static bool token_skip(struct scan_word *token, const char *text) {
    size_t len = strlen(text);
    if (token->len < len || memcmp(token->text, text, len) != 0) {
        return false;
    }
    token->text += len;
    token->len -= len;
    return true;
}

static bool token_chop(struct scan_word *token, const char *text) {
    size_t len = strlen(text);
    if (token->len < len || memcmp(token->text + token->len - len, text, len) != 0) {
        return false;
    }
    token->len -= len;
    return true;
}

/* Takes off a pair of brackets: "[…]". */
static bool token_unwrap(struct scan_word *token, const char *opening, const char *closing) {
    struct scan_word inner = *token;
    if (!token_skip(&inner, opening) || !token_chop(&inner, closing)) {
        return false;
    }
    *token = inner;
    return true;
}

/* More digits than a double holds exactly are damage. */
static bool all_digits(struct scan_word token) {
    size_t n = 0;
    while (n < token.len && is_digit(token.text[n])) {
        n++;
    }
    return n > 0 && n == token.len && n <= DBL_DIG;
}

/* The whole token as a number: digits only; or with a sign and a fraction, "-392", "47.312". */
static bool token_integer(struct scan_word token, double *ret_value) {
    return all_digits(token) && number_parse(token.text, token.len, ret_value) == 0;
}

static bool token_decimal(struct scan_word token, double *ret_value) {
    struct scan_word fraction = token;
    struct scan_word whole;
    token_skip(&fraction, "-");
    return token_part(&fraction, '.', &whole) && all_digits(whole) &&
           (fraction.text == NULL || all_digits(fraction)) &&
           number_parse(token.text, token.len, ret_value) == 0;
}

/* Writes the token in lower case; false if it is not a name (letters, at least one, digits, "_",
 * "-",
 * ".") or longer than `size` - 1. */
static bool token_name(struct scan_word token, char *out, size_t size) {
    bool has_letter = false;
    if (token.len >= size) {
        return false;
    }
    for (size_t i = 0; i < token.len; i++) {
        char c = token.text[i];
        bool upper = c >= 'A' && c <= 'Z';
        bool letter = upper || (c >= 'a' && c <= 'z');
        if (!letter && !is_digit(c) && c != '_' && c != '-' && c != '.') {
            return false;
        }
        has_letter = has_letter || letter;
        out[i] = (char)(upper ? c - 'A' + 'a' : c);
    }
    out[token.len] = '\0';
    return has_letter;
}

/* ---- values behind a name, in base units; false if the form is another ---- */

/* "12%" */
static bool value_percent(struct scan_word token, double *ret_ratio) {
    double percent;
    if (!token_chop(&token, "%") || !token_integer(token, &percent)) {
        return false;
    }
    *ret_ratio = percent / 100;
    return true;
}

/* "1190" */
static bool value_megahertz(struct scan_word token, double *ret_hertz) {
    double megahertz;
    if (!token_integer(token, &megahertz)) {
        return false;
    }
    *ret_hertz = megahertz * 1e6;
    return true;
}

struct unit {
    const char *text;
    double factor;
};

/* A number with one of the 1024-based units "B", "kB", "KB", "MB", "GB"; the unit also goes for
 * numbers that stand before it ("277/3854MB"). */
static bool value_size(struct scan_word token, double *ret_number, double *ret_unit_bytes) {
    static const struct unit units[] = {
        {"kB", 0x1p10}, {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"B", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (token_chop(&token, units[i].text)) {
            *ret_unit_bytes = units[i].factor;
            return token_integer(token, ret_number);
        }
    }
    return false;
}

/* "458x4MB", or one block without a count: "252kB", with NAN for the number. */
static bool value_blocks(struct scan_word token, double *ret_block_bytes, double *ret_blocks) {
    struct scan_word size = token;
    struct scan_word count;
    double blocks = NAN;
    double number, unit_bytes;
    token_part(&size, 'x', &count);
    if (size.text == NULL) {
        size = token;
    } else if (!token_integer(count, &blocks)) {
        return false;
    }
    if (!value_size(size, &number, &unit_bytes)) {
        return false;
    }
    *ret_block_bytes = number * unit_bytes;
    *ret_blocks = blocks;
    return true;
}

/* "47.312C", or followed by the peak, which is skipped: "34.3C/34.8C". */
static bool value_celsius(struct scan_word token, double *ret_celsius) {
    struct scan_word current, peak;
    double celsius, peak_celsius;
    token_part(&token, '/', &current);
    if (!token_chop(&current, "C") || !token_decimal(current, &celsius)) {
        return false;
    }
    if (token_part(&token, '/', &peak) &&
        (token.text != NULL || !token_chop(&peak, "C") || !token_decimal(peak, &peak_celsius))) {
        return false;
    }
    *ret_celsius = celsius;
    return true;
}

static bool parse_watts(struct scan_word token, double *ret_watts, bool *ret_has_unit) {
    /* Divisors keep the nearest number: 4.925, not 4.925000000000001. */
    static const struct unit divisors[] = {{"mW", 1e3}, {"uW", 1e6}, {"W", 1}};
    double number;
    double divisor = 1e3;
    *ret_has_unit = false;
    for (size_t i = 0; i < ARRAY_LEN(divisors) && !*ret_has_unit; i++) {
        if (token_chop(&token, divisors[i].text)) {
            divisor = divisors[i].factor;
            *ret_has_unit = true;
        }
    }
    if (!token_decimal(token, &number)) {
        return false;
    }
    *ret_watts = number / divisor;
    return true;
}

/* "466/466", "-392mW/-392mW", "4925mW/4925mW/4925mW": current, average and peak, which is skipped.
 * Milliwatts, unless the unit is "W" or "uW". A single number must have a unit, and has NAN for the
 * average. */
static bool value_power(struct scan_word token, double *ret_watts, double *ret_average_watts) {
    double watts[3] = {NAN, NAN, NAN}; /* current, average, peak */
    bool has_unit = false;
    struct scan_word part;
    size_t n = 0;
    for (; token_part(&token, '/', &part); n++) {
        if (n == ARRAY_LEN(watts) || !parse_watts(part, &watts[n], &has_unit)) {
            return false;
        }
    }
    if (n == 1 && !has_unit) {
        return false;
    }
    *ret_watts = watts[0];
    *ret_average_watts = watts[1];
    return true;
}

static bool parse_load(struct scan_word text, double *ret_ratio) {
    if (!token_unwrap(&text, "[", "]")) {
        return value_percent(text, ret_ratio);
    }
    struct scan_word element;
    double sum = 0;
    size_t n = 0;
    for (double ratio; token_part(&text, ',', &element); n++) {
        if (!value_percent(element, &ratio)) {
            return false;
        }
        sum += ratio;
    }
    *ret_ratio = sum / (double)n;
    return true;
}

static bool parse_clocks(struct scan_word text, struct reading *reading) {
    if (!token_unwrap(&text, "[", "]")) {
        reading->n_clocks = 1;
        return value_megahertz(text, &reading->clock_hertz[0]);
    }
    struct scan_word element;
    while (text.len > 0 && token_part(&text, ',', &element)) {
        if (reading->n_clocks == TEGRASTATS_MAX_GPCS) {
            reading->n_unknown++;
            continue;
        }
        double *hertz = &reading->clock_hertz[reading->n_clocks++];
        *hertz = NAN;
        reading->n_unknown += !value_megahertz(element, hertz);
    }
    return true;
}

static bool value_reading(struct scan_word token, struct reading *ret_reading) {
    *ret_reading = (struct reading){.load_ratio = NAN};
    if (scan_word_equal(token, "off")) {
        ret_reading->off = true;
        return true;
    }
    if (value_megahertz(token, &ret_reading->clock_hertz[0])) {
        ret_reading->n_clocks = 1;
        return true;
    }
    struct scan_word load;
    token_part(&token, '@', &load);
    if (token.text == NULL) {
        return parse_load(load, &ret_reading->load_ratio);
    }
    return (load.len == 0 || parse_load(load, &ret_reading->load_ratio)) &&
           parse_clocks(token, ret_reading);
}

/* ---- the fields of a record ---- */

struct parser {
    struct scan_word rest;
    struct tegrastats_line *line;
    bool glued; /* something occurs twice that a record has once */
};

/* Reads a field that begins with the token `name` and goes on in `parser->rest`; false if it looks
 * different. */
typedef bool field_rule(struct parser *parser, struct scan_word name);

static bool next(struct parser *parser, struct scan_word *ret_token) {
    return token_next(&parser->rest, ret_token);
}

static bool next_is(struct parser *parser, const char *text) {
    struct scan_word token;
    return next(parser, &token) && scan_word_equal(token, text);
}

static bool either(struct scan_word token, const char *a, const char *b) {
    return scan_word_equal(token, a) || scan_word_equal(token, b);
}

/* Adds an entry to a list; entries begin with their names, and of equal names the first counts.
 * False if the list is full. */
static bool keep(void *entries, size_t *n_entries, size_t max, size_t size, const void *entry) {
    char *end = (char *)entries + *n_entries * size;
    for (const char *other = entries; other < end; other += size) {
        if (strcmp(other, entry) == 0) {
            return true;
        }
    }
    if (*n_entries == max) {
        return false;
    }
    memcpy(end, entry, size);
    (*n_entries)++;
    return true;
}

/* "CPU@47.5C". A gated sensor prints -256, the zone PMIC a constant. */
static bool read_zone(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_zone zone;
    const char *at = memrchr(name.text, '@', name.len);
    if (at == NULL) {
        return false;
    }
    struct scan_word value = {at + 1, (size_t)(name.text + name.len - at - 1)};
    name.len = (size_t)(at - name.text);
    if (!token_name(name, zone.name, sizeof(zone.name)) || !value_celsius(value, &zone.celsius)) {
        return false;
    }
    return zone.celsius <= -256 || strcmp(zone.name, "pmic") == 0 ||
           keep(line->zones, &line->n_zones, TEGRASTATS_MAX_ZONES, sizeof(zone), &zone);
}

/* The text in parentheses behind the sizes. */
static bool parse_memory_detail(struct scan_word detail, struct tegrastats_memory *memory) {
    struct scan_word word, value, more;
    if (!token_unwrap(&detail, "(", ")") || !token_next(&detail, &word) ||
        !token_next(&detail, &value) || token_next(&detail, &more)) {
        return false;
    }
    double number, unit;
    if (scan_word_equal(word, "cached") && value_size(value, &number, &unit)) {
        memory->cached_bytes = number * unit;
        return true;
    }
    return scan_word_equal(word, "lfb") &&
           value_blocks(value, &memory->free_block_bytes, &memory->free_blocks);
}

/* "1446/3957MB (lfb 458x4MB)", "0/252kB(lfb 252kB)" */
static bool read_memory(struct parser *parser, struct tegrastats_memory *memory) {
    struct scan_word value, used, detail;
    double used_number, total_number, unit;
    if (!next(parser, &value)) {
        return false;
    }
    struct scan_word attached = value;
    token_part(&attached, '(', &value);
    token_part(&value, '/', &used);
    if (value.text == NULL || !token_integer(used, &used_number) ||
        !value_size(value, &total_number, &unit)) {
        return false;
    }
    memory->used_bytes = used_number * unit;
    memory->total_bytes = total_number * unit;
    struct parser ahead = *parser;
    if (attached.text != NULL) {
        detail = (struct scan_word){attached.text - 1, attached.len + 1};
        parser->line->n_unknown += !parse_memory_detail(detail, memory);
    } else if (next(&ahead, &detail) && parse_memory_detail(detail, memory)) {
        parser->rest = ahead.rest;
    }
    return true;
}

static bool read_memories(struct parser *parser, struct scan_word name) {
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
        if (scan_word_equal(name, memories[i].name)) {
            parser->glued = parser->glued || !isnan(memories[i].memory->total_bytes);
            return read_memory(parser, memories[i].memory);
        }
    }
    return false;
}

static bool parse_cpu(struct scan_word text, double common_hertz, struct tegrastats_cpu *cpu) {
    *cpu = (struct tegrastats_cpu){.online = NAN, .load_ratio = NAN, .frequency_hertz = NAN};
    if (scan_word_equal(text, "off")) {
        cpu->online = 0;
        return true;
    }
    struct scan_word load;
    double ratio;
    double hertz = common_hertz;
    token_part(&text, '@', &load);
    if (!value_percent(load, &ratio) || (text.text != NULL && !value_megahertz(text, &hertz))) {
        return false;
    }
    *cpu = (struct tegrastats_cpu){.online = 1, .load_ratio = ratio, .frequency_hertz = hertz};
    return true;
}

/* "CPU [2%@345,off,0%@345]", "cpu [0%,1%]@102" */
static bool read_cpus(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct scan_word clock, list, element;
    double hertz = NAN;
    if (!either(name, "CPU", "cpu") || !next(parser, &clock) || !token_skip(&clock, "[")) {
        return false;
    }
    token_part(&clock, ']', &list);
    if (clock.text == NULL ||
        (clock.len > 0 && (!token_skip(&clock, "@") || !value_megahertz(clock, &hertz)))) {
        return false;
    }
    parser->glued = parser->glued || line->n_cpus > 0;
    while (list.len > 0 && token_part(&list, ',', &element)) {
        if (line->n_cpus == TEGRASTATS_MAX_CPUS) {
            line->n_unknown++;
        } else {
            line->n_unknown += !parse_cpu(element, hertz, &line->cpus[line->n_cpus++]);
        }
    }
    return true;
}

static bool read_reading(struct parser *parser, struct reading *ret_reading) {
    struct scan_word value;
    if (!next(parser, &value) || !value_reading(value, ret_reading)) {
        return false;
    }
    parser->line->n_unknown += ret_reading->n_unknown;
    return true;
}

/* fmax passes over NAN. */
static double fastest(const struct reading *reading) {
    double hertz = NAN;
    for (size_t i = 0; i < reading->n_clocks; i++) {
        hertz = fmax(hertz, reading->clock_hertz[i]);
    }
    return hertz;
}

static bool read_gpu(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct reading reading;
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
 * if there is none or it cannot be read. */
static bool read_second_gpc(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct reading reading;
    if (!scan_word_equal(name, "GR3D2_FREQ") || !read_reading(parser, &reading)) {
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
static bool read_emc(struct parser *parser, struct scan_word name) {
    struct reading reading;
    if (!either(name, "EMC", "EMC_FREQ") || !read_reading(parser, &reading)) {
        return false;
    }
    double hertz = fastest(&reading);
    parser->line->emc_frequency_hertz = hertz;
    parser->line->emc_load_ratio = hertz > 0 ? reading.load_ratio : NAN;
    return true;
}

/* "MTS fg 1% bg 8%" */
static bool read_mts(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct scan_word foreground, background;
    if (!scan_word_equal(name, "MTS") || !next_is(parser, "fg") || !next(parser, &foreground) ||
        !next_is(parser, "bg") || !next(parser, &background)) {
        return false;
    }
    line->n_unknown += !value_percent(foreground, &line->mts_foreground_ratio);
    line->n_unknown += !value_percent(background, &line->mts_background_ratio);
    return true;
}

/* "EDP limit 1912" */
static bool read_edp(struct parser *parser, struct scan_word name) {
    struct scan_word value;
    return scan_word_equal(name, "EDP") && next_is(parser, "limit") && next(parser, &value) &&
           value_megahertz(value, &parser->line->edp_limit_hertz);
}

static bool read_throttle(struct parser *parser, struct scan_word name) {
    struct scan_word value;
    return scan_word_equal(name, "throttle") && next(parser, &value) &&
           token_integer(value, &parser->line->throttle_events);
}

/* "VDD_IN 5299mW/5299mW". Channels that are not connected all have the name NC. */
static bool read_rail(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_rail rail;
    struct scan_word value;
    if (!token_name(name, rail.name, sizeof(rail.name)) || !next(parser, &value) ||
        !value_power(value, &rail.watts, &rail.average_watts)) {
        return false;
    }
    return strcmp(rail.name, "nc") == 0 ||
           keep(line->rails, &line->n_rails, TEGRASTATS_MAX_RAILS, sizeof(rail), &rail);
}

/* One engine has had several names. */
static bool engine_name(struct scan_word token, char name[static TEGRASTATS_NAME_SIZE]) {
    static const struct {
        const char *printed;
        const char *name;
    } aliases[] = {
        {"msenc", "nvenc0"},
        {"nvdec", "nvdec0"},
        {"nvenc", "nvenc0"},
        {"nvjpg", "nvjpg0"},
    };
    token_chop(&token, "_FREQ");
    if (!token_name(token, name, TEGRASTATS_NAME_SIZE)) {
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

static bool read_engine(struct parser *parser, struct scan_word name) {
    struct tegrastats_line *line = parser->line;
    struct tegrastats_engine engine;
    struct reading reading;
    if (!engine_name(name, engine.name) || !read_reading(parser, &reading)) {
        return false;
    }
    engine.load_ratio = reading.load_ratio;
    engine.frequency_hertz = fastest(&reading);
    engine.active = reading.off ? 0 : NAN;
    if (!isnan(engine.frequency_hertz)) {
        engine.active = engine.frequency_hertz > 0;
    }
    return keep(line->engines, &line->n_engines, TEGRASTATS_MAX_ENGINES, sizeof(engine), &engine);
}

/* The first rule that matches counts: "CPU@45C" is a zone, "CPU [12%@1190]" are the cores, "CPU
 * 466/466" is a rail; any other name with a reading is an engine. */
static field_rule *const rules[] = {
    read_zone, read_memories, read_cpus,     read_gpu,  read_second_gpc, read_emc,
    read_mts,  read_edp,      read_throttle, read_rail, read_engine,
};

static void read_field(struct parser *parser, struct scan_word name) {
    struct scan_word behind = parser->rest;
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
static bool has_shape(struct scan_word token, const char *shape) {
    bool equal = token.len == strlen(shape);
    for (size_t i = 0; i < token.len && equal; i++) {
        bool digit = token.text[i] >= '0' && token.text[i] <= '9';
        equal = shape[i] == '0' ? digit : token.text[i] == shape[i];
    }
    return equal;
}

/* "[number] [MM-DD-YYYY HH:MM:SS] RAM 1446/3957MB": local time without a zone, not used. */
static bool read_head(struct parser *parser) {
    struct scan_word token;
    double number;
    if (!next(parser, &token) || (token_integer(token, &number) && !next(parser, &token))) {
        return false;
    }
    if (has_shape(token, "00-00-0000") &&
        (!next(parser, &token) || !has_shape(token, "00:00:00") || !next(parser, &token))) {
        return false;
    }
    return scan_word_equal(token, "RAM") && read_memory(parser, &parser->line->ram);
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
    struct scan_word token;
    clear(ret_line);
    if (!read_head(&parser)) {
        return -EINVAL;
    }
    while (next(&parser, &token)) {
        read_field(&parser, token);
    }
    return parser.glued ? -EINVAL : 0;
}

/* Builds lines from the grammar, with the record that they stand for, and compares value by value.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "collectors/source/tegrastats_line.h"
#include "exporter/core/buf.h"
#include "tests/unit/collectors/source/tegrastats_text.h"

enum { N_LINES = 5000 };

static uint64_t state;

/* xorshift64*: the same lines on every machine. */
static unsigned below(unsigned n) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * UINT64_C(2685821657736338717)) >> 33) % n;
}

struct draft {
    struct buf text;
    struct tegrastats_line expected;
};

static void blank(struct draft *draft) {
    for (unsigned n = below(4) == 0 ? 1 + below(9) : 1; n > 0; n--) {
        buf_add_char(&draft->text, below(20) == 0 ? '\t' : ' ');
    }
}

/* A name that no rule knows, unlike all others of its line. */
static void new_name(char name[static TEGRASTATS_NAME_SIZE], const char *prefix, size_t number) {
    static const char letters[] = "abcxyzABCXYZ0189_-.";
    size_t len = (size_t)snprintf(name, TEGRASTATS_NAME_SIZE, "%s%zu", prefix, number);
    for (unsigned n = below(10); n > 0; n--) {
        name[len++] = letters[below(sizeof(letters) - 1)];
    }
    name[len] = '\0';
}

static void lower(char *name) {
    for (; *name != '\0'; name++) {
        *name = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
    }
}

static void add_memory(struct draft *draft, const char *name, struct tegrastats_memory *memory) {
    static const struct {
        const char *text;
        double bytes;
    } units[] = {{"B", 1}, {"kB", 1024}, {"KB", 1024}, {"MB", 1048576}, {"GB", 1073741824}};
    unsigned used = below(200000), total = below(200000), unit = below(5);
    buf_add_str(&draft->text, name);
    blank(draft);
    buf_printf(&draft->text, "%u/%u%s", used, total, units[unit].text);
    memory->used_bytes = used * units[unit].bytes;
    memory->total_bytes = total * units[unit].bytes;
    unsigned form = below(4), count = below(9999), size = below(9999);
    if (form < 3 && below(2) == 0) {
        blank(draft);
    }
    unit = below(5);
    if (form == 0) {
        buf_printf(&draft->text, "(lfb %ux%u%s)", count, size, units[unit].text);
        memory->free_blocks = count;
    } else if (form == 1) {
        buf_printf(&draft->text, "(lfb %u%s)", size, units[unit].text);
    } else if (form == 2) {
        buf_printf(&draft->text, "(cached %u%s)", size, units[unit].text);
        memory->cached_bytes = size * units[unit].bytes;
    }
    if (form < 2) {
        memory->free_block_bytes = size * units[unit].bytes;
    }
}

static void add_swap(struct draft *draft) {
    add_memory(draft, "SWAP", &draft->expected.swap);
}

static void add_iram(struct draft *draft) {
    add_memory(draft, "IRAM", &draft->expected.iram);
}

static void add_carveout(struct draft *draft) {
    add_memory(draft, "Carveout", &draft->expected.carveout);
}

static void add_cpus(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    bool common = below(3) == 0;
    unsigned clock = below(3000);
    buf_add_str(&draft->text, below(2) == 0 ? "CPU" : "cpu");
    blank(draft);
    line->n_cpus = 1 + below(TEGRASTATS_MAX_CPUS);
    for (size_t i = 0; i < line->n_cpus; i++) {
        unsigned load = below(101);
        buf_add_char(&draft->text, i == 0 ? '[' : ',');
        if (below(4) == 0) {
            buf_add_str(&draft->text, "off");
            line->cpus[i] = (struct tegrastats_cpu){0, NAN, NAN};
            continue;
        }
        line->cpus[i] = (struct tegrastats_cpu){1, load / 100.0, clock * 1e6};
        buf_printf(&draft->text, "%u%%", load);
        if (!common) {
            unsigned own = below(3000);
            line->cpus[i].frequency_hertz = own * 1e6;
            buf_printf(&draft->text, "@%u", own);
        }
    }
    buf_add_char(&draft->text, ']');
    if (common) {
        buf_printf(&draft->text, "@%u", clock);
    }
}

/* "@clock" or "@[clock,…]"; returns how many, and the clocks. */
static size_t add_clocks(struct draft *draft, double *hertz) {
    bool list = below(2) == 0;
    size_t n = list ? 1 + below(TEGRASTATS_MAX_GPCS) : 1;
    buf_add_str(&draft->text, list ? "@[" : "@");
    for (size_t i = 0; i < n; i++) {
        unsigned megahertz = below(3) == 0 ? 0 : below(4000);
        hertz[i] = megahertz * 1e6;
        buf_printf(&draft->text, i == 0 ? "%u" : ",%u", megahertz);
    }
    buf_add_str(&draft->text, list ? "]" : "");
    return n;
}

static double highest(const double *hertz, size_t n) {
    double max = NAN;
    for (size_t i = 0; i < n; i++) {
        max = isnan(max) || hertz[i] > max ? hertz[i] : max;
    }
    return max;
}

static void add_load(struct draft *draft, double *ret_ratio) {
    unsigned load = below(101);
    buf_printf(&draft->text, "%u%%", load);
    *ret_ratio = load / 100.0;
}

static void add_emc(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    double hertz[TEGRASTATS_MAX_GPCS], load = NAN;
    buf_add_str(&draft->text, below(2) == 0 ? "EMC" : "EMC_FREQ");
    blank(draft);
    unsigned form = below(3); /* load, clock, both */
    if (form != 1) {
        add_load(draft, &load);
    }
    if (form > 0) {
        line->emc_frequency_hertz = highest(hertz, add_clocks(draft, hertz));
        line->emc_load_ratio = line->emc_frequency_hertz > 0 ? load : NAN;
    }
}

static void add_gpu(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    buf_add_str(&draft->text, below(2) == 0 ? "GR3D" : "GR3D_FREQ");
    blank(draft);
    unsigned form = below(3);
    if (form != 1) {
        add_load(draft, &line->gpu_load_ratio);
    }
    if (form > 0) {
        line->n_gpcs = add_clocks(draft, line->gpc_frequency_hertz);
        line->gpu_frequency_hertz = highest(line->gpc_frequency_hertz, line->n_gpcs);
    }
    if (below(3) == 0) {
        unsigned second = below(2) == 0 ? 0 : below(2000);
        blank(draft);
        buf_printf(&draft->text, "GR3D2_FREQ 5%%@%u", second);
        if (line->n_gpcs == 1 && second > 0) {
            line->gpc_frequency_hertz[line->n_gpcs++] = second * 1e6;
            line->gpu_frequency_hertz = highest(line->gpc_frequency_hertz, 2);
        }
    }
}

static void add_mts(struct draft *draft) {
    unsigned foreground = below(101), background = below(101);
    buf_printf(&draft->text, "MTS fg %u%% bg %u%%", foreground, background);
    draft->expected.mts_foreground_ratio = foreground / 100.0;
    draft->expected.mts_background_ratio = background / 100.0;
}

static void add_limits(struct draft *draft) {
    unsigned edp = below(3000), throttle = below(3000);
    buf_printf(&draft->text, "EDP limit %u throttle %u", edp, throttle);
    draft->expected.edp_limit_hertz = edp * 1e6;
    draft->expected.throttle_events = throttle;
}

static void add_engine(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    if (line->n_engines == TEGRASTATS_MAX_ENGINES) {
        return;
    }
    struct tegrastats_engine *engine = &line->engines[line->n_engines];
    double hertz[TEGRASTATS_MAX_GPCS];
    *engine = (struct tegrastats_engine){.active = NAN, .load_ratio = NAN, .frequency_hertz = NAN};
    new_name(engine->name, "Engine", line->n_engines++);
    buf_printf(&draft->text, "%s%s", engine->name, below(2) == 0 ? "_FREQ" : "");
    lower(engine->name);
    blank(draft);
    unsigned form = below(6);
    if (form == 0) {
        buf_add_str(&draft->text, "off");
        engine->active = 0;
    } else if (form == 1) {
        unsigned megahertz = below(3) == 0 ? 0 : below(4000);
        buf_printf(&draft->text, "%u", megahertz);
        engine->frequency_hertz = megahertz * 1e6;
    } else if (form == 2) {
        unsigned a = below(101), b = below(101);
        buf_printf(&draft->text, "[%u%%,%u%%]", a, b);
        engine->load_ratio = (a / 100.0 + b / 100.0) / 2;
    } else if (form < 5) {
        add_load(draft, &engine->load_ratio);
    }
    if (form == 2 || form > 3) {
        engine->frequency_hertz = highest(hertz, add_clocks(draft, hertz));
    }
    if (!isnan(engine->frequency_hertz)) {
        engine->active = engine->frequency_hertz > 0;
    }
}

/* Digits with up to three decimals, exact in both directions. */
static double add_decimal(struct draft *draft, unsigned max) {
    char number[32];
    snprintf(number, sizeof(number), below(3) == 0 ? "%s%u" : "%s%u.%u", below(4) == 0 ? "-" : "",
             below(max), below(1000));
    buf_add_str(&draft->text, number);
    return strtod(number, NULL);
}

static void add_zone(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    if (line->n_zones == TEGRASTATS_MAX_ZONES) {
        return;
    }
    struct tegrastats_zone *zone = &line->zones[line->n_zones];
    new_name(zone->name, "Zone", line->n_zones++);
    buf_printf(&draft->text, "%s@", zone->name);
    lower(zone->name);
    zone->celsius = add_decimal(draft, 256);
    buf_add_str(&draft->text, "C");
    if (below(3) == 0) {
        buf_add_str(&draft->text, "/");
        add_decimal(draft, 300);
        buf_add_str(&draft->text, "C");
    }
}

static double add_power(struct draft *draft) {
    static const struct {
        const char *text;
        double per_watt;
    } units[] = {{"", 1e3}, {"mW", 1e3}, {"W", 1}, {"uW", 1e6}};
    double number = add_decimal(draft, 90000);
    unsigned unit = below(4);
    buf_add_str(&draft->text, units[unit].text);
    return number / units[unit].per_watt;
}

static void add_rail(struct draft *draft) {
    struct tegrastats_line *line = &draft->expected;
    if (line->n_rails == TEGRASTATS_MAX_RAILS) {
        return;
    }
    struct tegrastats_rail *rail = &line->rails[line->n_rails];
    new_name(rail->name, "Rail", line->n_rails++);
    buf_add_str(&draft->text, rail->name);
    lower(rail->name);
    blank(draft);
    rail->watts = add_power(draft);
    buf_add_str(&draft->text, "/");
    rail->average_watts = add_power(draft);
    if (below(3) == 0) {
        buf_add_str(&draft->text, "/");
        add_power(draft);
    }
}

static void add_unknown(struct draft *draft) {
    static const char *const tokens[] = {"{x}",      "a=b",       "NC 0/0",
                                         "PMIC@50C", "CV0@-256C", "GPU@-256C"};
    unsigned i = below(6);
    buf_add_str(&draft->text, tokens[i]);
    draft->expected.n_unknown += i < 2;
}

typedef void add_field(struct draft *draft);

/* These come once at most, in any order; the others as often as they like. */
static add_field *const once[] = {add_carveout, add_cpus,   add_emc, add_gpu,
                                  add_iram,     add_limits, add_mts, add_swap};
static add_field *const often[] = {add_engine, add_rail, add_unknown, add_zone};

static void build(struct draft *draft) {
    const struct tegrastats_memory none = {NAN, NAN, NAN, NAN, NAN};
    draft->expected = (struct tegrastats_line){none, none, none, none, NAN, NAN,        NAN,
                                               NAN,  NAN,  NAN,  NAN,  NAN, .n_cpus = 0};
    if (below(4) == 0) {
        buf_printf(&draft->text, "%u ", below(1000));
    }
    if (below(2) == 0) {
        buf_printf(&draft->text, "%02u-%02u-%u %02u:%02u:%02u ", below(13), below(32),
                   1970 + below(100), below(24), below(60), below(60));
    }
    add_memory(draft, "RAM", &draft->expected.ram);
    bool used[ARRAY_LEN(once)] = {false};
    for (unsigned n = below(40); n > 0; n--) {
        unsigned i = below(ARRAY_LEN(once) + 12);
        if (i < ARRAY_LEN(once) && used[i]) {
            continue;
        }
        blank(draft);
        if (i < ARRAY_LEN(once)) {
            used[i] = true;
            once[i](draft);
        } else {
            often[below(ARRAY_LEN(often))](draft);
        }
    }
    if (below(2) == 0) {
        buf_add_str(&draft->text, below(2) == 0 ? "\n" : "\r\n");
    }
}

static void test_random_lines(void) {
    state = 1;
    for (int i = 0; i < N_LINES; i++) {
        struct draft draft = {0};
        struct buf expected CLEANUP_BUF = {0};
        struct buf actual CLEANUP_BUF = {0};
        struct tegrastats_line parsed;
        build(&draft);
        int r = tegrastats_line_parse(draft.text.data, draft.text.len, &parsed);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, draft.text.data);
        tegrastats_text(&draft.expected, &expected);
        tegrastats_text(&parsed, &actual);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(buf_str(&expected), buf_str(&actual), draft.text.data);
        buf_finish(&draft.text);
    }
}

#include "profiler/analysis/profile.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

static char path[] = "/tmp/waap-test-profile-XXXXXX";
static FILE *file;
static struct profile *profile;
static struct measures measures;

/* Writes a line of the record; ' stands for ", and ` for \" within a key. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (const char *c = text; *c != '\0'; c++) {
        fputs(*c == '\'' ? "\"" : *c == '`' ? "\\\"" : (char[]){*c, '\0'}, file);
    }
    fputc('\n', file);
}

static void declare(const char *key, const char *type) {
    say("{'kind':'series','key':'%s','type':'%s','unit':'','help':''}", key, type);
}

static void phase(unsigned run, const char *name, double t) {
    say("{'kind':'phase','target':'cpu','run':%u,'phase':'%s','t':%g,'at':%g}", run, name, t, t);
}

static void sample(unsigned run, double t, const char *values) {
    say("{'kind':'sample','target':'cpu','run':%u,'t':%g,'at':%g,'values':{%s}}", run, t, t,
        values);
}

static void end(unsigned run, double t, const char *more) {
    say("{'kind':'end','target':'cpu','run':%u,'t':%g,'at':%g%s}", run, t, t, more);
}

void setUp(void) {
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    file = fdopen(mkstemp(path), "w");
    TEST_ASSERT_NOT_NULL(file);
    say("{'kind':'run','format':'waap-run/1'}");
}

void tearDown(void) {
    measures = (struct measures){0};
    profile_destroy(profile);
    profile = NULL;
    unlink(path);
}

static const struct profile_target *read_back(void) {
    struct error err = {0};
    fclose(file);
    TEST_ASSERT_EQUAL_MESSAGE(0, profile_read(path, &profile, &err), err.text);
    TEST_ASSERT_EQUAL(1, profile->n_targets);
    measures = profile->targets[0].measures;
    return &profile->targets[0];
}

struct expected {
    const char *name;
    double mean;
    enum better better;
};

static void expect(const struct expected *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        TEST_ASSERT_LESS_THAN_MESSAGE(measures.n, i, rows[i].name);
        const struct measure *measure = &measures.items[i];
        TEST_ASSERT_EQUAL_STRING(rows[i].name, measure->name);
        TEST_ASSERT_DOUBLE_WITHIN_MESSAGE(1e-9, rows[i].mean, measure->mean, measure->name);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].better, measure->better, measure->name);
    }
    TEST_ASSERT_EQUAL(n, measures.n);
}

/* The growth of the machine's GPU memory counts only until the driver names the application. */
static void test_new_gpu_memory(void) {
    for (int named = 0; named < 2; named++) {
        if (named) {
            tearDown();
            setUp();
        }
        declare("gpu.memory.new_bytes{of=`machine`}", "gauge");
        declare("gpu.memory.new_bytes", "gauge");
        phase(1, "run", 5);
        sample(1, 5, "'gpu.memory.new_bytes{of=`machine`}':0");
        sample(1, 6,
               named ? "'gpu.memory.new_bytes{of=`machine`}':90,'gpu.memory.new_bytes':70"
                     : "'gpu.memory.new_bytes{of=`machine`}':90");
        end(1, 7, ",'wall_seconds':2");
        read_back();
        static const struct expected rows[][2] = {
            {{"gpu.memory.new_bytes{of=\"machine\"}", 45, BETTER_LOWER},
             {"wall.seconds", 2, BETTER_LOWER}},
            {{"gpu.memory.new_bytes", 70, BETTER_LOWER}, {"wall.seconds", 2, BETTER_LOWER}},
        };
        expect(rows[named], 2);
    }
}

/* 4 W while nothing runs, then 9 W, one and a half CPUs and 20 frames a second for two seconds. */
static void test_what_a_run_comes_down_to(void) {
    declare("cpu.user_seconds", "counter");
    declare("cpu.system_seconds", "counter");
    declare("energy.joules", "counter");
    declare("memory.bytes", "gauge");
    declare("system.memory_bytes", "gauge");
    declare("app.fps_total", "counter");
    declare("app.fps", "gauge");
    declare("app.cars", "gauge");
    phase(1, "baseline", 1);
    sample(1, 2, "'energy.joules':100");
    sample(1, 4, "'energy.joules':108");
    phase(1, "run", 5);
    sample(1, 5,
           "'cpu.user_seconds':7,'cpu.system_seconds':2,'energy.joules':110,'memory.bytes':10,"
           "'system.memory_bytes':90,'app.fps_total':0,'app.cars':4");
    sample(1, 6,
           "'cpu.user_seconds':8,'cpu.system_seconds':2.5,'energy.joules':119,'memory.bytes':30,"
           "'system.memory_bytes':90,'app.fps_total':20,'app.cars':6,'app.fps':11");
    sample(1, 7,
           "'cpu.user_seconds':9,'cpu.system_seconds':3,'energy.joules':128,'memory.bytes':20,"
           "'system.memory_bytes':90,'app.fps_total':40,'app.cars':'NaN'");
    end(1, 7, ",'wall_seconds':2.5,'peak_memory_bytes':77");
    read_back();
    static const struct expected rows[] = {
        {"cars", 5, BETTER_NEITHER},
        {"cpu.percent", 150, BETTER_LOWER},
        {"cpu.system_seconds", 1, BETTER_LOWER},
        {"cpu.user_seconds", 2, BETTER_LOWER},
        {"energy.joules", 18, BETTER_LOWER},
        {"energy.net_joules", 10, BETTER_LOWER},
        {"energy_per_frame.joules", 0.25, BETTER_LOWER},
        {"fps", 20, BETTER_HIGHER}, /* of the counter, not the plugin's own idea */
        {"fps_total", 40, BETTER_NEITHER},
        {"frames", 40, BETTER_HIGHER},
        {"memory.bytes", 20, BETTER_LOWER},
        {"memory.peak_bytes", 77, BETTER_LOWER},
        {"power.idle_watts", 4, BETTER_NEITHER},
        {"system.memory_bytes", 90, BETTER_NEITHER}, /* whoever needs it */
        {"wall.seconds", 2.5, BETTER_LOWER},
    };
    expect(rows, ARRAY_LEN(rows));
    const struct measure *memory = measures_find(&measures, "memory.bytes");
    TEST_ASSERT_EQUAL_DOUBLE(3, memory->n);
    TEST_ASSERT_EQUAL_DOUBLE(10, memory->min);
    TEST_ASSERT_EQUAL_DOUBLE(20, memory->p50);
    TEST_ASSERT_EQUAL_DOUBLE(30, memory->max);
    TEST_ASSERT_EQUAL_DOUBLE(150, measures_find(&measures, "cpu.percent")->p50);
}

/* From 5 to 15 W in ten seconds, and nobody counts joules. */
static void test_watts_are_integrated(void) {
    declare("power.watts", "gauge");
    phase(1, "run", 1);
    for (int i = 0; i <= 10; i++) {
        char values[64];
        snprintf(values, sizeof(values), "'power.watts':%d", 5 + i);
        sample(1, 1 + i, values);
    }
    end(1, 11, "");
    read_back();
    TEST_ASSERT_EQUAL_DOUBLE(100, measures_find(&measures, "energy.joules")->mean);
    TEST_ASSERT_EQUAL_DOUBLE(10, measures_find(&measures, "power.watts")->mean);
    TEST_ASSERT_NULL(measures_find(&measures, "energy.net_joules"));
}

/* A counter that falls has begun again; the application's own begins with its run. */
static void test_counters(void) {
    declare("io.read_bytes", "counter");
    declare("app.jobs_total", "counter");
    phase(1, "run", 1);
    sample(1, 2, "'io.read_bytes':500");
    sample(1, 3, "'io.read_bytes':530,'app.jobs_total':100");
    sample(1, 4, "'io.read_bytes':20,'app.jobs_total':110");
    end(1, 5, "");
    phase(2, "warmup", 6);
    sample(2, 7, "'app.jobs_total':100");
    phase(2, "run", 8);
    sample(2, 8, "'app.jobs_total':100");
    sample(2, 10, "'app.jobs_total':120");
    end(2, 10, "");
    read_back();
    TEST_ASSERT_EQUAL_DOUBLE(50, measures_find(&measures, "io.read_bytes")->mean);
    const struct measure *jobs = measures_find(&measures, "jobs_total");
    TEST_ASSERT_EQUAL(2, jobs->n_runs);
    TEST_ASSERT_EQUAL_DOUBLE(110, jobs->runs[0]);
    TEST_ASSERT_EQUAL_DOUBLE(20, jobs->runs[1]);
    const struct measure *rate = measures_find(&measures, "jobs_per_second");
    TEST_ASSERT_EQUAL_DOUBLE(10, rate->runs[0]);
    TEST_ASSERT_EQUAL_DOUBLE(10, rate->runs[1]);
    TEST_ASSERT_EQUAL(BETTER_NEITHER, rate->better);
}

/* Bounds may come in any order, and other labels tell histograms apart. */
static void test_histograms(void) {
    declare("app.load_seconds{le=`+Inf`,stage=`a`}", "histogram_bucket");
    declare("app.load_seconds{le=`0.04`,stage=`a`}", "histogram_bucket");
    declare("app.load_seconds{le=`0.02`,stage=`a`}", "histogram_bucket");
    declare("app.load_seconds{le=`+Inf`,stage=`b`}", "histogram_bucket");
    declare("app.load_seconds_sum{stage=`a`}", "histogram_sum");
    phase(1, "run", 1);
    sample(1, 2, "'app.load_seconds{le=`0.02`,stage=`a`}':0");
    sample(1, 3,
           "'app.load_seconds{le=`0.02`,stage=`a`}':50,'app.load_seconds{le=`0.04`,stage=`a`}':100,"
           "'app.load_seconds{le=`+Inf`,stage=`a`}':100,'app.load_seconds{le=`+Inf`,stage=`b`}':0,"
           "'app.load_seconds_sum{stage=`a`}':2.5");
    end(1, 4, ",'wall_seconds':3");
    read_back();
    TEST_ASSERT_EQUAL(2, measures.n);
    const struct measure *load = measures_find(&measures, "load_seconds{stage=\"a\"}");
    TEST_ASSERT_NOT_NULL(load);
    TEST_ASSERT_EQUAL_DOUBLE(100, load->n);
    TEST_ASSERT_EQUAL_DOUBLE(0.025, load->mean);
    TEST_ASSERT_EQUAL_DOUBLE(0.02, load->p50);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, 0.036, load->p90);
    TEST_ASSERT_EQUAL_DOUBLE(0.04, load->max);
    TEST_ASSERT_EQUAL(2, load->n_spread);
    TEST_ASSERT_EQUAL_DOUBLE(50, load->spread[1].weight);
}

static void test_runs_that_do_not_agree(void) {
    static const double walls[][3] = {{10, 10.1, 9.9}, {10, 12, 8}};
    for (size_t i = 0; i < ARRAY_LEN(walls); i++) {
        if (i > 0) {
            tearDown();
            setUp();
        }
        for (unsigned run = 0; run < 3; run++) {
            char more[64];
            snprintf(more, sizeof(more), ",'wall_seconds':%g", walls[i][run]);
            phase(run + 1, "run", 20 * run + 1);
            end(run + 1, 20 * run + 9, more);
        }
        read_back();
        TEST_ASSERT_EQUAL(i == 1, measures_find(&measures, "wall.seconds")->unstable);
    }
}

static void test_runs(void) {
    phase(1, "warmup", 1);
    sample(1, 2, "");
    end(1, 3, "");
    phase(2, "run", 4);
    say("{'kind':'lost','target':'cpu','run':2,'samples':3}");
    end(2, 6, "");
    phase(2, "cooldown", 7); /* still of the run that has ended */
    phase(2, "run", 9);      /* tried again */
    say("{'kind':'finished','t':10,'interrupted':true}");
    const struct profile_target *target = read_back();
    TEST_ASSERT_EQUAL(3, target->n_runs);
    TEST_ASSERT_FALSE(target->runs[0].measured);
    TEST_ASSERT_EQUAL(1, target->runs[0].n_samples);
    TEST_ASSERT_TRUE(target->runs[1].measured);
    TEST_ASSERT_EQUAL(3, target->runs[1].n_lost);
    TEST_ASSERT_EQUAL_DOUBLE(2, target->runs[1].measured_s);
    TEST_ASSERT_EQUAL(2, target->runs[2].number);
    TEST_ASSERT_TRUE(profile->finished && profile->interrupted && !profile->record->torn);
    TEST_ASSERT_EQUAL_DOUBLE(10, profile->last_t);
}

static void test_which_runs_failed(void) {
    static const struct {
        const char *more;
        bool failed;
    } rows[] = {
        {",'exit':0,'stopped_by':'itself'", false},
        {",'exit':1,'stopped_by':'itself'", true},
        {",'exit':0,'signal':11", true},
        {",'exit':1,'timed_out':true", false},
        {",'exit':130,'stopped_by':'SIGINT'", false},
        {",'exit':0,'error':'exec /app: No such file or directory'", true},
    };
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        phase(i, "run", i);
        end(i, i + 1, rows[i].more);
    }
    phase(ARRAY_LEN(rows), "run", 50); /* has not ended */
    const struct profile_target *target = read_back();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].failed, profile_run_failed(&target->runs[i]),
                                  rows[i].more);
    }
    TEST_ASSERT_FALSE(profile_run_failed(&target->runs[ARRAY_LEN(rows)]));
}

static void test_not_a_record(void) {
    struct error err = {0};
    fclose(file);
    TEST_ASSERT_EQUAL(0, truncate(path, 0));
    TEST_ASSERT_EQUAL(-ENODATA, profile_read(path, &profile, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "has no line of kind \"run\""));
    TEST_ASSERT_EQUAL(-ENOENT, profile_read("/nonexistent/samples.jsonl", &profile, &err));
}

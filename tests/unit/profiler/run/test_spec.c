#include "profiler/run/spec.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"

static void parse(const char *text, struct run_spec *spec) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = run_spec_parse("sage.yaml", text, strlen(text), spec, &problems);
    TEST_ASSERT_EQUAL_STRING("", problems.n_lines > 0 ? problems.lines[0] : "");
    TEST_ASSERT_EQUAL_INT(0, r);
}

static void check_words(const char *expected, const char *const *words) {
    struct buf shown CLEANUP_BUF = {0};
    TEST_ASSERT_NOT_NULL(words);
    for (; *words != NULL; words++) {
        buf_printf(&shown, "[%s]", *words);
    }
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&shown));
}

static void test_sketch_of_authors(void) {
    struct run_spec spec CLEANUP_RUN_SPEC;
    parse("name: objcounter\nversion: 0.5.1\nauthors: [x]\nsource: {url: u, branch: main}\n"
          "profiling:\n  targets:\n    - {args: \"-interval 1 --use-gpu\", timeout: 120}\n"
          "    - args: --use-cpu\n      timeout: 0\n  metrics: ['system', 'gpu-summary']\n",
          &spec);
    TEST_ASSERT_EQUAL_STRING("objcounter", spec.name);
    TEST_ASSERT_EQUAL_STRING("0.5.1", spec.version);
    TEST_ASSERT_EQUAL_UINT(2, spec.n_targets);
    TEST_ASSERT_EQUAL_STRING("1", spec.targets[0].name);
    check_words("[-interval][1][--use-gpu]", spec.targets[0].args);
    TEST_ASSERT_EQUAL_INT64(120000, spec.targets[0].timeout_ms);
    TEST_ASSERT_EQUAL_INT64(1, spec.targets[0].repeats);
    TEST_ASSERT_NULL(spec.targets[0].command);
    TEST_ASSERT_EQUAL_INT64(0, spec.targets[1].timeout_ms);
    TEST_ASSERT_EQUAL_INT64(
        RUN_METRICS_APP | RUN_METRICS_PROCESS | RUN_METRICS_SYSTEM | RUN_METRICS_GPU, spec.metrics);
}

static void test_everything(void) {
    struct run_spec spec CLEANUP_RUN_SPEC;
    parse("profiling:\n"
          "  command: [python3, main.py]\n  env: {A: 1, B: null}\n  grace: 2s\n"
          "  max_runtime: 10m\n  repeats: 3\n"
          "  targets:\n"
          "    - {name: cpu, args: [--in, a b], repeats: 5, warmup: 1, env: {K: v}, dataset: ./s}\n"
          "    - {name: gpu, command: ./other, image: local/x:1, gpu: all}\n"
          "  sampling: {interval: 20ms, baseline: 0, cooldown: 3s, cooldown_max: 1m}\n"
          "  services:\n    - {name: playback, command: serve 8090, env: {P: q}, ready: {tcp: "
          "8090, timeout: 5s}}\n    - {command: [a], ready: {file: /run/x, delay: 10ms}}\n"
          "  gates: [{metric: fps.p50, min: 9.5}, {metric: memory.peak, max_increase: 5%, max: "
          "1e9}]\n"
          "  output: {dir: out, formats: [jsonl, html]}\n",
          &spec);
    const struct run_target *cpu = &spec.targets[0], *gpu = &spec.targets[1];
    check_words("[--in][a b]", cpu->args);
    check_words("[python3][main.py]", cpu->command);
    check_words("[K=v]", cpu->env);
    check_words("[A=1][B=]", gpu->env);
    check_words("[./other]", gpu->command);
    TEST_ASSERT_EQUAL_INT64(5, cpu->repeats);
    TEST_ASSERT_EQUAL_INT64(3, gpu->repeats);
    TEST_ASSERT_EQUAL_INT64(1, cpu->warmup);
    TEST_ASSERT_EQUAL_INT64(RUN_GPU_ALL, gpu->gpu);
    TEST_ASSERT_EQUAL_STRING("local/x:1", gpu->image);
    TEST_ASSERT_EQUAL_STRING("./s", cpu->dataset);
    TEST_ASSERT_EQUAL_INT64(20, spec.interval_ms);
    TEST_ASSERT_EQUAL_INT64(0, spec.baseline_ms);
    TEST_ASSERT_EQUAL_INT64(3000, spec.cooldown_ms);
    TEST_ASSERT_EQUAL_INT64(60000, spec.cooldown_max_ms);
    TEST_ASSERT_EQUAL_INT64(2000, spec.grace_ms);
    TEST_ASSERT_EQUAL_INT64(600000, spec.max_runtime_ms);
    TEST_ASSERT_EQUAL_UINT(2, spec.n_services);
    TEST_ASSERT_EQUAL_STRING("playback", spec.services[0].name);
    check_words("[serve][8090]", spec.services[0].command);
    TEST_ASSERT_EQUAL_STRING("8090", spec.services[0].ready_tcp);
    TEST_ASSERT_EQUAL_INT64(5000, spec.services[0].ready_timeout_ms);
    TEST_ASSERT_EQUAL_STRING("/run/x", spec.services[1].ready_file);
    TEST_ASSERT_EQUAL_INT64(10, spec.services[1].ready_delay_ms);
    TEST_ASSERT_EQUAL_UINT(2, spec.n_gates);
    TEST_ASSERT_EQUAL_DOUBLE(9.5, spec.gates[0].limits[GATE_MIN]);
    TEST_ASSERT_TRUE(isnan(spec.gates[0].limits[GATE_MAX]));
    TEST_ASSERT_EQUAL_DOUBLE(0.05, spec.gates[1].limits[GATE_MAX_INCREASE]);
    TEST_ASSERT_EQUAL_DOUBLE(1e9, spec.gates[1].limits[GATE_MAX]);
    TEST_ASSERT_EQUAL_STRING("out", spec.out_dir);
    check_words("[jsonl][html]", spec.formats);
    TEST_ASSERT_EQUAL_PTR(gpu, run_spec_target(&spec, "gpu"));
    TEST_ASSERT_EQUAL_PTR(gpu, run_spec_target(&spec, "2"));
    TEST_ASSERT_NULL(run_spec_target(&spec, "3"));
    TEST_ASSERT_NULL(run_spec_target(&spec, "0"));
    TEST_ASSERT_NULL(run_spec_target(&spec, ""));
}

static void test_containers(void) {
    struct run_spec spec CLEANUP_RUN_SPEC;
    parse("name: objcounter\nnamespace: waggle\nversion: 0.0.0\n"
          "profiling:\n"
          "  mounts: [{source: models, target: /models}]\n"
          "  targets:\n"
          "    - {args: --use-gpu}\n"
          "    - {init: false, mounts: [{source: ./c, target: /c, writable: true}]}\n"
          "  services:\n"
          "    - {image: 'localhost:5000/waggle/playback-server:1.2'}\n"
          "    - {image: a@sha256:00, name: b, mounts: [{source: v, target: /v}]}\n",
          &spec);
    TEST_ASSERT_EQUAL_STRING("waggle/objcounter:0.0.0", spec.image);
    const struct run_target *first = &spec.targets[0], *second = &spec.targets[1];
    TEST_ASSERT_EQUAL_UINT(1, first->mounts.n);
    TEST_ASSERT_EQUAL_STRING("models", first->mounts.items[0].source);
    TEST_ASSERT_EQUAL_STRING("/models", first->mounts.items[0].target);
    TEST_ASSERT_EQUAL_INT64(0, first->mounts.items[0].writable);
    TEST_ASSERT_EQUAL_INT64(1, first->init);
    TEST_ASSERT_EQUAL_UINT(1, second->mounts.n);
    TEST_ASSERT_EQUAL_INT64(1, second->mounts.items[0].writable);
    TEST_ASSERT_EQUAL_INT64(0, second->init);
    TEST_ASSERT_EQUAL_STRING("playback-server", spec.services[0].name);
    TEST_ASSERT_NULL(spec.services[0].command);
    TEST_ASSERT_EQUAL_STRING("b", spec.services[1].name);
    TEST_ASSERT_EQUAL_STRING("/v", spec.services[1].mounts.items[0].target);
}

static void test_image_of_name_and_version(void) {
    static const struct {
        const char *text, *image;
    } cases[] = {
        {"name: a\nnamespace: b\nversion: 1.20\n", "b/a:1.20"},
        {"name: a\nversion: '1'\n", "a:1"},
        {"name: a\nnamespace: b\n", NULL},
        {"namespace: b\nversion: 1\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_spec spec CLEANUP_RUN_SPEC;
        parse(cases[i].text, &spec);
        TEST_ASSERT_EQUAL_STRING(cases[i].image, spec.image);
    }
}

static void test_without_targets(void) {
    static const char *const texts[] = {
        "",
        "name: x\n",
        "profiling:\n",
        "profiling: {targets: []}\n",
        "source:\n  profiling: {dataset: d, command: [main.py, --input]}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct run_spec spec CLEANUP_RUN_SPEC;
        parse(texts[i], &spec);
        TEST_ASSERT_EQUAL_UINT(1, spec.n_targets);
        TEST_ASSERT_EQUAL_STRING("1", spec.targets[0].name);
        check_words("", spec.targets[0].args);
        TEST_ASSERT_EQUAL_INT64(100, spec.interval_ms);
        if (i == ARRAY_LEN(texts) - 1) {
            check_words("[main.py][--input]", spec.targets[0].command);
            TEST_ASSERT_EQUAL_STRING("d", spec.targets[0].dataset);
        }
    }
    struct run_spec none CLEANUP_RUN_SPEC;
    run_spec_init(&none);
    TEST_ASSERT_EQUAL_UINT(1, none.n_targets);
}

/* Each mistake, as it is told; several at once are told in the order of the file. */
static void test_mistakes(void) {
    static const struct {
        const char *text, *problems;
    } cases[] = {
        {"[]", "f:1:1: expected a mapping, got a list"},
        {"a: [",
         "f:2:1: not valid YAML: did not find expected node content while parsing a flow node that "
         "began in line 2"},
        {"profiling: 1", "f:1:12: profiling: expected a mapping, got a value"},
        {"profiling: {target: []}", "f:1:13: profiling.target: unknown key, did you mean targets?"},
        {"profiling: {targets: 1}", "f:1:22: profiling.targets: expected a list, got a value"},
        {"profiling: {targets: [1]}",
         "f:1:23: profiling.targets[0]: expected a mapping such as {args: …, timeout: 120}, got a "
         "value"},
        {"profiling: {targets: [{timeout: -1}]}",
         "f:1:33: profiling.targets[0].timeout: expected a duration from 0s to 1d, got "
         "\"-1\""},
        {"profiling: {targets: [{timeout: soon, repeats: 0}]}",
         "f:1:33: profiling.targets[0].timeout: expected a duration from 0s to 1d, got "
         "\"soon\"\n"
         "f:1:48: profiling.targets[0].repeats: expected a whole number from 1 to 1000, got "
         "\"0\""},
        {"profiling: {targets: [{args: \"'a\"}]}",
         "f:1:30: profiling.targets[0].args: expected a closing '"},
        {"profiling: {targets: [{args: {}}]}",
         "f:1:30: profiling.targets[0].args: expected a list or one text, got a mapping"},
        {"profiling: {targets: [{args: [[]]}]}",
         "f:1:31: profiling.targets[0].args[0]: expected a value, got a list"},
        {"profiling: {targets: [{name: a/b}]}",
         "f:1:23: profiling.targets[0]: name: expected at most 64 letters, digits, '.', '_' and "
         "'-', got \"a/b\""},
        {"profiling: {targets: [{name: 2}, {}]}",
         "f:1:34: profiling.targets[1]: name: \"2\" is also the name of targets[0]"},
        {"profiling: {targets: [{env: [A]}]}",
         "f:1:29: profiling.targets[0].env: expected names and values, got a list"},
        {"profiling: {env: {\"A=B\": 1, C: []}}",
         "f:1:26: profiling.env.A=B: expected the name of a variable\n"
         "f:1:32: profiling.env.C: expected a value, got a list"},
        {"profiling: {gpu: two}",
         "f:1:18: profiling.gpu: expected one of auto, all, none, got \"two\""},
        {"profiling: {metrics: [gpu-sumary]}",
         "f:1:23: profiling.metrics[0]: expected one of app, gpu, gpu-summary, power, process, "
         "system, got \"gpu-sumary\""},
        {"profiling: {sampling: {interval: 1ms, rate: 3}}",
         "f:1:34: profiling.sampling.interval: expected a duration from 10ms to 10s, "
         "got \"1ms\"\nf:1:39: profiling.sampling.rate: unknown key"},
        {"profiling: {services: [{name: a}, {command: b, ready: {tcp: http}}]}",
         "f:1:24: profiling.services[0]: expected a command or an image\n"
         "f:1:55: profiling.services[1].ready: tcp: expected a port or host:port, got \"http\""},
        {"profiling: {mounts: [{source: a}, {source: a, target: b}, {source: a, target: /b, "
         "writable: perhaps}]}",
         "f:1:22: profiling.mounts[0]: expected a source and, as target, an absolute path in the "
         "container\n"
         "f:1:35: profiling.mounts[1]: expected a source and, as target, an absolute path in the "
         "container\n"
         "f:1:93: profiling.mounts[2].writable: expected true or false, got \"perhaps\""},
        {"profiling: {services: [{image: a, name: b c}, {command: d, mounts: [{source: a, target: "
         "/b}]}]}",
         "f:1:24: profiling.services[0]: name: expected at most 64 letters, digits, '.', '_' and "
         "'-', got \"b c\"\n"
         "f:1:47: profiling.services[1]: mounts: expected an image with them"},
        {"profiling: {gates: [{min: 1}, {metric: fps}, {metric: fps, min: x}, {metric: fps, "
         "max_increase: -5%}]}",
         "f:1:21: profiling.gates[0]: expected a metric, such as fps.p50\n"
         "f:1:31: profiling.gates[1]: expected min, max, max_increase or max_decrease\n"
         "f:1:65: profiling.gates[2].min: expected a number, got \"x\"\n"
         "f:1:97: profiling.gates[3].max_increase: expected a number such as 0.05 or 5%, got "
         "\"-5%\""},
        {"profiling: {output: {dir: '', formats: [xml]}}",
         "f:1:27: profiling.output.dir: expected a text, got \"\"\n"
         "f:1:41: profiling.output.formats[0]: expected one of csv, html, jsonl, junit, "
         "openmetrics, summary.json, got \"xml\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_spec spec CLEANUP_RUN_SPEC;
        struct problems problems CLEANUP_PROBLEMS = {0};
        struct buf shown CLEANUP_BUF = {0};
        int r = run_spec_parse("f", cases[i].text, strlen(cases[i].text), &spec, &problems);
        for (size_t j = 0; j < problems.n_lines; j++) {
            buf_printf(&shown, "%s%s", j > 0 ? "\n" : "", problems.lines[j]);
        }
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].problems, buf_str(&shown), cases[i].text);
        TEST_ASSERT_EQUAL_INT(-EINVAL, r);
    }
}

static void test_no_file(void) {
    struct run_spec spec CLEANUP_RUN_SPEC;
    struct problems problems CLEANUP_PROBLEMS = {0};
    TEST_ASSERT_EQUAL_INT(-ENOENT, run_spec_load("/nonexistent/sage.yaml", &spec, &problems));
    TEST_ASSERT_EQUAL_UINT(1, problems.n_lines);
    TEST_ASSERT_NOT_NULL(strstr(problems.lines[0], "/nonexistent/sage.yaml"));
}

/* The words, each in brackets; or the fault. */
static void show(const char *text, struct buf *out) {
    struct arena arena CLEANUP_ARENA = {0};
    struct error err;
    const char *const *words;
    int r = run_args_split(text, &arena, &words, &err);
    if (r < 0) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, r);
        buf_add_str(out, err.text);
        return;
    }
    for (; *words != NULL; words++) {
        buf_printf(out, "[%s]", *words);
    }
}

static void test_words(void) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", ""},
        {" \t\n ", ""},
        {"-interval 1 --use-gpu", "[-interval][1][--use-gpu]"},
        {"  a   b ", "[a][b]"},
        {"'a b' c", "[a b][c]"},
        {"\"a b\"c", "[a bc]"},
        {"a''b", "[ab]"},
        {"''", "[]"},
        {"\"\" ''", "[][]"},
        {"'a\"b' \"c'd\"", "[a\"b][c'd]"},
        {"a\\ b", "[a b]"},
        {"\"a\\\"b\\\\c\"", "[a\"b\\c]"},
        {"'a\\b'", "[a\\b]"},
        {"; rm -rf / && $(x) `y` $HOME *", "[;][rm][-rf][/][&&][$(x)][`y`][$HOME][*]"},
        {"a\nb", "[a][b]"},
        {"\xc3\xa4 \xe2\x82\xac", "[\xc3\xa4][\xe2\x82\xac]"},
        {"'a", "expected a closing '"},
        {"a \"b'", "expected a closing \""},
        {"a\\", "expected a character after the last \\"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf shown CLEANUP_BUF = {0};
        show(cases[i].text, &shown);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].words, buf_str(&shown), cases[i].text);
    }
}

#include "profiler/run/engine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unity.h>

static void test_times(void) {
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {
        {"2026-11-16T14:00:00.125Z", 1794837600.125},
        {"2026-11-16T14:00:00Z", 1794837600},
        {"2026-11-16T16:00:00.5+02:00", 1794837600.5},
        {"2026-11-16T08:30:00-05:30", 1794837600},
        {"0001-01-01T00:00:00Z", 0},
        {"", 0},
        {"soon", 0},
        {NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].seconds, run_engine_parse_time(cases[i].text));
    }
}

static void test_states(void) {
    struct run_container_state state;
    static const char running[] = "{\"Id\":\"x\",\"State\":{\"Running\":true,\"Pid\":77,"
                                  "\"ExitCode\":0,\"StartedAt\":\"2026-11-16T14:00:00Z\","
                                  "\"FinishedAt\":\"0001-01-01T00:00:00Z\",\"Error\":null}}";
    TEST_ASSERT_EQUAL_INT(0, run_engine_parse_state(running, strlen(running), &state));
    TEST_ASSERT_TRUE(state.running);
    TEST_ASSERT_EQUAL_INT(77, state.pid);
    TEST_ASSERT_EQUAL_DOUBLE(1794837600, state.started_seconds);
    TEST_ASSERT_EQUAL_DOUBLE(0, state.finished_seconds);
    TEST_ASSERT_EQUAL_STRING("", state.address);
    static const char reachable[] =
        "{\"State\":{\"Running\":true},\"NetworkSettings\":{\"Networks\":"
        "{\"n\":{\"IPAddress\":\"172.18.0.2\"}}}}";
    TEST_ASSERT_EQUAL_INT(0, run_engine_parse_state(reachable, strlen(reachable), &state));
    TEST_ASSERT_EQUAL_STRING("172.18.0.2", state.address);
    static const char ended[] = "{\"State\":{\"Running\":false,\"ExitCode\":137}}";
    TEST_ASSERT_EQUAL_INT(0, run_engine_parse_state(ended, strlen(ended), &state));
    TEST_ASSERT_FALSE(state.running);
    TEST_ASSERT_EQUAL_INT(0, state.exit_code);
    TEST_ASSERT_EQUAL_INT(SIGKILL, state.exit_signal);
    TEST_ASSERT_EQUAL_INT(0, state.pid);
    static const char failed[] = "{\"State\":{\"Running\":false,\"ExitCode\":255}}";
    TEST_ASSERT_EQUAL_INT(0, run_engine_parse_state(failed, strlen(failed), &state));
    TEST_ASSERT_EQUAL_INT(255, state.exit_code);
    TEST_ASSERT_EQUAL_INT(0, state.exit_signal);
    static const char *const bad[] = {"", "{", "[]", "{}", "{\"State\":1}", "null"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        TEST_ASSERT_EQUAL_INT(-EBADMSG, run_engine_parse_state(bad[i], strlen(bad[i]), &state));
    }
}

static void test_descriptions(void) {
    struct buf text CLEANUP_BUF = {0};
    struct run_container_spec spec = {
        .owner = "7.8",
        .image = "a/b:1",
        .argv = (const char *const[]){"--x", "; rm \"-rf\"", NULL},
        .env = (const char *const[]){"A=b c", NULL},
        .socket_dir = "/tmp/w:x",
        .dataset = "/data",
        .gpu_request = true,
    };
    run_engine_describe(&spec, &text);
    TEST_ASSERT_EQUAL_STRING(
        "{\"Image\":\"a/b:1\",\"Cmd\":[\"--x\",\"; rm \\\"-rf\\\"\"],\"Env\":[\"A=b c\"],"
        "\"Labels\":{\"waap.run\":\"7.8\"},\"HostConfig\":{\"NetworkMode\":\"host\",\"Init\":false,"
        "\"Mounts\":["
        "{\"Type\":\"bind\",\"Source\":\"/tmp/w:x\",\"Target\":\"/run/waap\",\"ReadOnly\":true},"
        "{\"Type\":\"bind\",\"Source\":\"/data\",\"Target\":\"/dataset\",\"ReadOnly\":true}],"
        "\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":-1,\"Capabilities\":[[\"gpu\"]]}]}}",
        buf_str(&text));
    buf_reset(&text);
    spec = (struct run_container_spec){
        .owner = "7.8",
        .image = "i",
        .argv = (const char *const[]){NULL},
        .env = (const char *const[]){NULL},
        .network = "waap-run-7.8",
        .hosts = (const char *const[]){"playback:172.18.0.2", NULL},
        .socket_dir = "/s",
        .mounts = {(struct run_mount[]){{"/a", "/b", 0}, {"/c", "/d", 1}}, 2},
        .init = true,
        .nvidia_runtime = true,
    };
    run_engine_describe(&spec, &text);
    TEST_ASSERT_EQUAL_STRING(
        "{\"Image\":\"i\",\"Env\":[],\"Labels\":{\"waap.run\":\"7.8\"},\"HostConfig\":{"
        "\"NetworkMode\":\"waap-run-7.8\",\"ExtraHosts\":[\"playback:172.18.0.2\"],\"Init\":true,"
        "\"Mounts\":["
        "{\"Type\":\"bind\",\"Source\":\"/s\",\"Target\":\"/run/waap\",\"ReadOnly\":true},"
        "{\"Type\":\"bind\",\"Source\":\"/a\",\"Target\":\"/b\",\"ReadOnly\":true},"
        "{\"Type\":\"bind\",\"Source\":\"/c\",\"Target\":\"/d\",\"ReadOnly\":false}],"
        "\"Runtime\":\"nvidia\"}}",
        buf_str(&text));
}

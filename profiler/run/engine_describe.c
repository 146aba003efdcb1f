#include "exporter/core/json.h"
#include "profiler/run/engine.h"

static void add_list(struct buf *out, const char *const *texts) {
    buf_add_char(out, '[');
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        json_add_string(out, texts[i]);
    }
    buf_add_char(out, ']');
}

static void add_mount(struct buf *out, const char *from, const char *to, bool read_only) {
    buf_add_str(out, "{\"Type\":\"bind\",\"Source\":");
    json_add_string(out, from);
    buf_printf(out, ",\"Target\":\"%s\",\"ReadOnly\":%s}", to, read_only ? "true" : "false");
}

void run_engine_describe(const struct run_container_wish *wish, struct buf *out) {
    buf_add_str(out, "{\"Image\":");
    json_add_string(out, wish->image);
    if (wish->argv != NULL && wish->argv[0] != NULL) {
        buf_add_str(out, ",\"Cmd\":");
        add_list(out, wish->argv);
    }
    buf_add_str(out, ",\"Env\":");
    add_list(out, wish->env);
    buf_add_str(out, ",\"Labels\":{\"" RUN_ENGINE_LABEL "\":");
    json_add_string(out, wish->owner);
    buf_add_str(out, "},\"HostConfig\":{\"NetworkMode\":\"host\","
                     "\"Mounts\":[");
    add_mount(out, wish->socket_dir, "/run/waap", true);
    if (wish->dataset != NULL) {
        buf_add_char(out, ',');
        add_mount(out, wish->dataset, "/dataset", true);
    }
    buf_add_char(out, ']');
    if (wish->nvidia_runtime) {
        buf_add_str(out, ",\"Runtime\":\"nvidia\"");
    }
    if (wish->gpu_request) {
        buf_add_str(out, ",\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":-1,"
                         "\"Capabilities\":[[\"gpu\"]]}]");
    }
    buf_add_str(out, "}}");
}

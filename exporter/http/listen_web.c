#include "exporter/http/listen_web.h"

#include "exporter/net/listen_passed.h"

/* Who hands sockets over wants them used: to enable waap.socket is enough. */
static bool takes_passed(const struct settings *settings) {
    int fds[LISTEN_PASSED_MAX];
    return settings_bool(settings, "web.systemd-socket") || listen_passed_find("http", fds) > 0;
}

int http_listeners_lookup(const struct settings *settings, struct listen_names *names) {
    const char *const *addresses = settings_list(settings, "web.listen-address");
    int r = listen_names_add_group(names, settings_string(settings, "web.listen-group"));
    for (; r == 0 && !takes_passed(settings) && *addresses != NULL; addresses++) {
        r = listen_names_add_host(names, *addresses);
    }
    return r;
}

int http_listeners_configure(struct http_listeners *listeners, const struct settings *settings,
                             const struct listen_names *names, struct error *err) {
    const struct http_listen_config config = {
        .name = "http",
        .addresses = settings_list(settings, "web.listen-address"),
        .passed = takes_passed(settings),
        .mode = settings_string(settings, "web.listen-mode"),
        .group = settings_string(settings, "web.listen-group"),
        .group_option = "web.listen-group",
        .names = names,
    };
    struct error cause;
    int r = http_listeners_listen(listeners, &config, &cause);
    return r < 0 ? error_set(err, r, "%s (see --web.listen-address)", cause.text) : 0;
}

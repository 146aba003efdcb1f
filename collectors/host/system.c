#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "collectors/host/part.h"
#include "exporter/core/clock.h"
#include "exporter/metrics/labels.h"

enum { SYSTEM_TIME, SYSTEM_UNAME };

const struct metric_desc host_system_metrics[] = {
    [SYSTEM_TIME] = {"node_time_seconds", "The system's clock, in seconds since 1970.",
                     METRIC_GAUGE, "seconds", NULL},
    [SYSTEM_UNAME] = {"node_uname_info", "Kernel and host as uname shows them; always 1.",
                      METRIC_INFO, NULL,
                      "domainname, machine, nodename, release, sysname, version"},
    {0},
};

struct host_system {
    struct utsname uname;
    struct labels *labels; /* of `uname`, or NULL */
};

/* The host name may change at run time; the labels are rendered again only then. */
static int update_labels(struct host_system *host, struct error *err) {
    struct utsname seen = {0};
    if (uname(&seen) < 0) {
        return error_set(err, -errno, "uname: %m");
    }
    if (host->labels != NULL && memcmp(&host->uname, &seen, sizeof(seen)) == 0) {
        return 0;
    }
    struct labels *labels = labels_render("domainname", seen.domainname, "machine", seen.machine,
                                          "nodename", seen.nodename, "release", seen.release,
                                          "sysname", seen.sysname, "version", seen.version);
    labels_destroy(host->labels);
    host->labels = labels;
    host->uname = seen;
    return 0;
}

static int system_collect(void *state, struct buf *scratch, struct snapshot *out,
                          struct error *err) {
    (void)scratch;
    struct host_system *host = state;
    snapshot_add(out, &host_system_metrics[SYSTEM_TIME], NULL, clock_wall_seconds());
    int r = update_labels(host, err);
    if (r == 0) {
        snapshot_add(out, &host_system_metrics[SYSTEM_UNAME], host->labels, 1);
    }
    return r;
}

static void system_close(void *state) {
    struct host_system *host = state;
    labels_destroy(host->labels);
}

const struct host_part host_system_part = {
    .state_size = sizeof(struct host_system),
    .collect = system_collect,
    .close = system_close,
};

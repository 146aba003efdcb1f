#include "collectors/container/options.h"

#include <errno.h>
#include <string.h>

#include "exporter/metrics/metric.h"
#include "exporter/settings/option.h"

static int check_prefix(const char *text, struct error *err) {
    if (!metric_name_valid(text, strlen(text))) {
        return error_set(err, -EINVAL, "expected the beginning of a metric's name, got \"%s\"",
                         text);
    }
    return 0;
}

const struct option container_options[] = {
    {
        .name = "collector.container.cri-socket",
        .type = OPTION_STRING,
        .default_text = "auto",
        .help = "Where the labels of pods are asked for (CRI), below path.rootfs; auto: where k3s, "
                "containerd or CRI-O listen; off: not",
    },
    {
        .name = "collector.container.crio-socket",
        .type = OPTION_STRING,
        .default_text = "/run/crio/crio.sock",
        .help = "Where CRI-O is asked for names, below path.rootfs; empty: not",
    },
    {
        .name = "collector.container.docker-socket",
        .type = OPTION_STRING,
        .default_text = "/run/docker.sock",
        .help = "Where Docker is asked for names, below path.rootfs; empty: not",
    },
    {
        .name = "collector.container.exclude",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Leave out containers whose name or image matches",
    },
    {
        .name = "collector.container.include",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Show only containers whose name or image matches",
    },
    {
        .name = "collector.container.label-include",
        .type = OPTION_STRING,
        .repeatable = true,
        .default_text = "com.docker.compose.*",
        .help = "Label of containers that is shown, as container_label_...; may hold * and ?",
    },
    {
        .name = "collector.container.max-containers",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 100000,
        .help = "Most containers that are shown",
    },
    {
        .name = "collector.container.podman-socket",
        .type = OPTION_STRING,
        .default_text = "/run/podman/podman.sock",
        .help = "Where podman is asked for names, below path.rootfs; empty: not",
    },
    {
        .name = "collector.container.prefix",
        .type = OPTION_STRING,
        .default_text = "container",
        .help = "What the names of the metrics begin with, where cAdvisor is scraped too",
        .check = check_prefix,
    },
    {0},
};

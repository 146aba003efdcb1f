#include "collectors/collectors.h"

#include "collectors/cgroup/cgroup.h"
#include "collectors/container/container.h"
#include "collectors/host/host.h"
#include "collectors/jetson/jetson.h"
#include "collectors/nvml/nvml.h"
#include "collectors/textfile/textfile.h"
#include "exporter/channel/push_collector.h"

const struct collector *const collectors_all[] = {
    &cgroup_collector, &container_collector, &host_collector,     &jetson_collector,
    &nvml_collector,   &push_collector,      &textfile_collector, NULL,
};

#include "collectors/collectors.h"

#include "collectors/cgroup.h"
#include "collectors/container.h"
#include "collectors/host.h"
#include "collectors/jetson.h"
#include "collectors/nvml.h"
#include "collectors/textfile.h"
#include "exporter/push_collector.h"

const struct collector *const collectors_all[] = {
    &cgroup_collector, &container_collector, &host_collector,     &jetson_collector,
    &nvml_collector,   &push_collector,      &textfile_collector, NULL,
};

#include "collectors/host/part.h"
#include "collectors/source/metric_list.h"

_Static_assert(HOST_CHARACTER_N_METRICS == 4 + 2, "list all of them");
_Static_assert(HOST_CPU_N_METRICS == 8, "list all of them");
_Static_assert(HOST_DISK_N_METRICS == 16 + 1, "list all of them");
_Static_assert(HOST_FILESYSTEM_N_METRICS == 4 + 2 + 1, "list all of them");
_Static_assert(HOST_LOAD_N_METRICS == 2 + 1, "list all of them");
_Static_assert(HOST_MEMORY_N_METRICS == 64 + 4, "list all of them");
_Static_assert(HOST_NETWORK_N_METRICS == 16, "list all of them");
_Static_assert(HOST_PRESSURE_N_METRICS == 4 + 2, "list all of them");
_Static_assert(HOST_SYSTEM_N_METRICS == 2, "list all of them");
_Static_assert(HOST_THERMAL_N_METRICS == 1, "list all of them");

const struct metric_desc *const host_metrics[] = {
    AT4(host_character_metrics, 0),  AT2(host_character_metrics, 4),
    AT8(host_cpu_metrics, 0),        AT16(host_disk_metrics, 0),
    AT1(host_disk_metrics, 16),      AT4(host_filesystem_metrics, 0),
    AT2(host_filesystem_metrics, 4), AT1(host_filesystem_metrics, 6),
    AT2(host_load_metrics, 0),       AT1(host_load_metrics, 2),
    AT64(host_memory_metrics, 0),    AT4(host_memory_metrics, 64),
    AT16(host_network_metrics, 0),   AT4(host_pressure_metrics, 0),
    AT2(host_pressure_metrics, 4),   AT2(host_system_metrics, 0),
    AT1(host_thermal_metrics, 0),    NULL,
};

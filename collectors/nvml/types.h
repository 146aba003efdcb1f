#pragma once

/* The types of NVIDIA's management library (NVML) that are used here. A test compares them with
 * NVIDIA's own header if that is available. */

enum nvml_code {
    NVML_CODE_SUCCESS = 0,
    NVML_CODE_UNINITIALIZED = 1,
    NVML_CODE_INVALID_ARGUMENT = 2,
    NVML_CODE_NOT_SUPPORTED = 3,
    NVML_CODE_NO_PERMISSION = 4,
    NVML_CODE_NOT_FOUND = 6,
    NVML_CODE_INSUFFICIENT_SIZE = 7,
    NVML_CODE_DRIVER_NOT_LOADED = 9,
    NVML_CODE_TIMEOUT = 10,
    NVML_CODE_FUNCTION_NOT_FOUND = 13,
    NVML_CODE_GPU_IS_LOST = 15,
    NVML_CODE_RESET_REQUIRED = 16,
    NVML_CODE_LIB_RM_VERSION_MISMATCH = 18,
    NVML_CODE_NO_DATA = 21,
    NVML_CODE_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_CODE_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_CODE_DEPRECATED = 26,
    NVML_CODE_GPU_NOT_FOUND = 28,
    NVML_CODE_UNKNOWN = 999,
};

enum {
    NVML_CLOCK_OF_GRAPHICS = 0,
    NVML_CLOCK_OF_SM = 1,
    NVML_CLOCK_OF_MEMORY = 2,
    NVML_CLOCK_OF_VIDEO = 3,

    NVML_THRESHOLD_SHUTDOWN = 0,
    NVML_THRESHOLD_SLOWDOWN = 1,
    NVML_THRESHOLD_MEMORY_MAX = 2,
    NVML_THRESHOLD_GPU_MAX = 3,

    NVML_SAMPLES_OF_POWER = 0,
    NVML_SAMPLES_OF_UTILIZATION = 1,

    NVML_IS_DOUBLE = 0,
    NVML_IS_UNSIGNED = 1,
    NVML_IS_UNSIGNED_LONG = 2,
    NVML_IS_UNSIGNED_LONG_LONG = 3,
    NVML_IS_SIGNED_LONG_LONG = 4,
    NVML_IS_SIGNED = 5,

    NVML_POLICY_POWER = 0,
    NVML_POLICY_THERMAL = 1,
    NVML_POLICY_SYNC_BOOST = 2,
    NVML_POLICY_BOARD_LIMIT = 3,
    NVML_POLICY_LOW_UTILIZATION = 4,
    NVML_POLICY_RELIABILITY = 5,
    NVML_POLICY_APP_CLOCKS = 10,
    NVML_POLICY_BASE_CLOCKS = 11,

    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_NVLINK_TRANSMITTED = 138, /* KiB */
    NVML_FIELD_NVLINK_RECEIVED = 139,

    NVML_EVENT_XID = 8,
    NVML_MAX_LINKS = 18,
    NVML_UNKNOWN_PSTATE = 32,
};

struct nvml_handle;    /* a GPU, or a part of one */
struct nvml_event_set; /* what events arrive in */

struct nvml_utilization {
    unsigned gpu; /* percent */
    unsigned memory;
};

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used; /* with what the driver reserves for itself */
};

struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_bar1_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char bus_id[32]; /* since _v3 */
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long used_memory; /* all ones: not known */
};

struct nvml_process {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance; /* all ones: none */
    unsigned compute_instance;
};

struct nvml_process_load {
    unsigned pid;
    unsigned long long timestamp_usec;
    unsigned sm; /* percent */
    unsigned memory;
    unsigned encoder;
    unsigned decoder;
};

struct nvml_attributes {
    unsigned multiprocessors;
    unsigned shared_copy_engines;
    unsigned shared_decoders;
    unsigned shared_encoders;
    unsigned shared_jpegs;
    unsigned shared_ofas;
    unsigned gpu_instance_slices;
    unsigned compute_instance_slices;
    unsigned long long memory_mib;
};

union nvml_value {
    double as_double;
    int as_signed;
    unsigned as_unsigned;
    unsigned long as_unsigned_long;
    unsigned long long as_unsigned_long_long;
    long long as_signed_long_long;
};

struct nvml_sample {
    unsigned long long timestamp_usec;
    union nvml_value value;
};

struct nvml_violation {
    unsigned long long reference_usec;
    unsigned long long violation_ns;
};

struct nvml_field {
    unsigned field;
    unsigned scope;
    long long timestamp_usec;
    long long latency_usec;
    unsigned type;
    unsigned code;
    union nvml_value value;
};

struct nvml_event {
    struct nvml_handle *device;
    unsigned long long type;
    unsigned long long data;
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct nvml_temperature {
    unsigned version;
    unsigned sensor;
    int celsius;
};

/* A struct that carries its version carries its size, too. */
#define NVML_VERSIONED(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

_Static_assert(sizeof(struct nvml_utilization) == 8, "as in the driver");
_Static_assert(sizeof(struct nvml_memory) == 24, "as in the driver");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "as in the driver");
_Static_assert(sizeof(struct nvml_bar1_memory) == 24, "as in the driver");
_Static_assert(sizeof(struct nvml_pci_info) == 68, "as in the driver");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "as in the driver");
_Static_assert(sizeof(struct nvml_process) == 24, "as in the driver");
_Static_assert(sizeof(struct nvml_process_load) == 32, "as in the driver");
_Static_assert(sizeof(struct nvml_attributes) == 40, "as in the driver");
_Static_assert(sizeof(struct nvml_sample) == 16, "as in the driver");
_Static_assert(sizeof(struct nvml_violation) == 16, "as in the driver");
_Static_assert(sizeof(struct nvml_field) == 40, "as in the driver");
_Static_assert(sizeof(struct nvml_event) == 32, "as in the driver");
_Static_assert(sizeof(struct nvml_temperature) == 12, "as in the driver");
_Static_assert(NVML_VERSIONED(struct nvml_memory_v2, 2) == 0x02000028, "as in the driver");

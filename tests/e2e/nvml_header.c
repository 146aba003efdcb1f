/* Compiles only if what we declare of NVML is what NVIDIA's header declares: sizes, offsets,
 * values, and the type of every function. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS /* plain names are the oldest functions, as under dlsym */
#include <nvml.h>
#include <stddef.h>

#include "collectors/nvml/types.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, their_member)                                             \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, their_member), #their_member)
#define SAME_VALUE(ours, theirs)                                                                   \
    _Static_assert((unsigned long long)(ours) == (unsigned long long)(theirs), #theirs)

SAME_SIZE(struct nvml_utilization, nvmlUtilization_t);
SAME_PLACE(struct nvml_utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_PLACE(struct nvml_memory, free, nvmlMemory_t, free);
SAME_PLACE(struct nvml_memory, used, nvmlMemory_t, used);
SAME_SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
SAME_PLACE(struct nvml_memory_v2, total, nvmlMemory_v2_t, total);
SAME_PLACE(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
SAME_PLACE(struct nvml_memory_v2, free, nvmlMemory_v2_t, free);
SAME_PLACE(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);
SAME_VALUE(NVML_VERSIONED(struct nvml_memory_v2, 2), nvmlMemory_v2);
SAME_SIZE(struct nvml_bar1_memory, nvmlBAR1Memory_t);
SAME_PLACE(struct nvml_bar1_memory, free, nvmlBAR1Memory_t, bar1Free);
SAME_PLACE(struct nvml_bar1_memory, used, nvmlBAR1Memory_t, bar1Used);
SAME_SIZE(struct nvml_pci_info, nvmlPciInfo_t);
SAME_PLACE(struct nvml_pci_info, domain, nvmlPciInfo_t, domain);
SAME_PLACE(struct nvml_pci_info, bus, nvmlPciInfo_t, bus);
SAME_PLACE(struct nvml_pci_info, device, nvmlPciInfo_t, device);
SAME_PLACE(struct nvml_pci_info, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(struct nvml_process_v1, nvmlProcessInfo_v1_t);
SAME_PLACE(struct nvml_process_v1, used_memory, nvmlProcessInfo_v1_t, usedGpuMemory);
SAME_SIZE(struct nvml_process, nvmlProcessInfo_v2_t);
SAME_PLACE(struct nvml_process, used_memory, nvmlProcessInfo_v2_t, usedGpuMemory);
SAME_PLACE(struct nvml_process, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
SAME_SIZE(struct nvml_process_load, nvmlProcessUtilizationSample_t);
SAME_PLACE(struct nvml_process_load, timestamp_usec, nvmlProcessUtilizationSample_t, timeStamp);
SAME_PLACE(struct nvml_process_load, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME_SIZE(struct nvml_attributes, nvmlDeviceAttributes_t);
SAME_PLACE(struct nvml_attributes, multiprocessors, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_PLACE(struct nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME_SIZE(union nvml_value, nvmlValue_t);
SAME_SIZE(struct nvml_sample, nvmlSample_t);
SAME_PLACE(struct nvml_sample, value, nvmlSample_t, sampleValue);
SAME_SIZE(struct nvml_violation, nvmlViolationTime_t);
SAME_PLACE(struct nvml_violation, violation_ns, nvmlViolationTime_t, violationTime);
SAME_SIZE(struct nvml_field, nvmlFieldValue_t);
SAME_PLACE(struct nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(struct nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(struct nvml_field, code, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(struct nvml_field, value, nvmlFieldValue_t, value);
SAME_SIZE(struct nvml_event, nvmlEventData_t);
SAME_PLACE(struct nvml_event, type, nvmlEventData_t, eventType);
SAME_PLACE(struct nvml_event, data, nvmlEventData_t, eventData);

SAME_VALUE(NVML_CODE_SUCCESS, NVML_SUCCESS);
SAME_VALUE(NVML_CODE_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(NVML_CODE_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(NVML_CODE_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NVML_CODE_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(NVML_CODE_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_VALUE(NVML_CODE_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(NVML_CODE_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(NVML_CODE_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME_VALUE(NVML_CODE_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(NVML_CODE_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NVML_CODE_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(NVML_CODE_LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(NVML_CODE_NO_DATA, NVML_ERROR_NO_DATA);
SAME_VALUE(NVML_CODE_VGPU_ECC_NOT_SUPPORTED, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED);
SAME_VALUE(NVML_CODE_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(NVML_CODE_DEPRECATED, NVML_ERROR_DEPRECATED);
SAME_VALUE(NVML_CODE_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
SAME_VALUE(NVML_CODE_UNKNOWN, NVML_ERROR_UNKNOWN);
SAME_VALUE(NVML_CLOCK_OF_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME_VALUE(NVML_CLOCK_OF_SM, NVML_CLOCK_SM);
SAME_VALUE(NVML_CLOCK_OF_MEMORY, NVML_CLOCK_MEM);
SAME_VALUE(NVML_CLOCK_OF_VIDEO, NVML_CLOCK_VIDEO);
SAME_VALUE(NVML_THRESHOLD_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_VALUE(NVML_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_VALUE(NVML_THRESHOLD_MEMORY_MAX, NVML_TEMPERATURE_THRESHOLD_MEM_MAX);
SAME_VALUE(NVML_THRESHOLD_GPU_MAX, NVML_TEMPERATURE_THRESHOLD_GPU_MAX);
SAME_VALUE(NVML_SAMPLES_OF_POWER, NVML_TOTAL_POWER_SAMPLES);
SAME_VALUE(NVML_SAMPLES_OF_UTILIZATION, NVML_GPU_UTILIZATION_SAMPLES);
SAME_VALUE(NVML_IS_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
SAME_VALUE(NVML_IS_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_VALUE(NVML_IS_UNSIGNED_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_VALUE(NVML_IS_UNSIGNED_LONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_VALUE(NVML_IS_SIGNED_LONG_LONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_VALUE(NVML_IS_SIGNED, NVML_VALUE_TYPE_SIGNED_INT);
SAME_VALUE(NVML_POLICY_POWER, NVML_PERF_POLICY_POWER);
SAME_VALUE(NVML_POLICY_THERMAL, NVML_PERF_POLICY_THERMAL);
SAME_VALUE(NVML_POLICY_SYNC_BOOST, NVML_PERF_POLICY_SYNC_BOOST);
SAME_VALUE(NVML_POLICY_BOARD_LIMIT, NVML_PERF_POLICY_BOARD_LIMIT);
SAME_VALUE(NVML_POLICY_LOW_UTILIZATION, NVML_PERF_POLICY_LOW_UTILIZATION);
SAME_VALUE(NVML_POLICY_RELIABILITY, NVML_PERF_POLICY_RELIABILITY);
SAME_VALUE(NVML_POLICY_APP_CLOCKS, NVML_PERF_POLICY_TOTAL_APP_CLOCKS);
SAME_VALUE(NVML_POLICY_BASE_CLOCKS, NVML_PERF_POLICY_TOTAL_BASE_CLOCKS);
SAME_VALUE(NVML_FIELD_MEMORY_TEMPERATURE, NVML_FI_DEV_MEMORY_TEMP);
SAME_VALUE(NVML_FIELD_NVLINK_TRANSMITTED, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
SAME_VALUE(NVML_FIELD_NVLINK_RECEIVED, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
SAME_VALUE(NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME_VALUE(NVML_MAX_LINKS, NVML_NVLINK_MAX_LINKS);
SAME_VALUE(NVML_UNKNOWN_PSTATE, NVML_PSTATE_UNKNOWN);
SAME_VALUE(1 << 5, nvmlClocksEventReasonSwThermalSlowdown);
SAME_VALUE(1 << 8, nvmlClocksEventReasonDisplayClockSetting);

/* From here on our names mean NVIDIA's structs, so that functions can be compared. */
#define nvml_handle nvmlDevice_st
#define nvml_event_set nvmlEventSet_st
#define nvml_utilization nvmlUtilization_st
#define nvml_memory nvmlMemory_st
#define nvml_memory_v2 nvmlMemory_v2_st
#define nvml_bar1_memory nvmlBAR1Memory_st
#define nvml_pci_info nvmlPciInfo_st
#define nvml_process_v1 nvmlProcessInfo_v1_st
#define nvml_process nvmlProcessInfo_v2_st
#define nvml_process_load nvmlProcessUtilizationSample_st
#define nvml_attributes nvmlDeviceAttributes_st
#define nvml_sample nvmlSample_st
#define nvml_violation nvmlViolationTime_st
#define nvml_field nvmlFieldValue_st
#define nvml_event nvmlEventData_st
#include "collectors/nvml/library.h"

/* An enum of theirs is an unsigned of ours, which C lets pass, also behind a pointer. */
#define SAME_CALL(member, function)                                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(((struct nvml_library *)0)->member),    \
                                                __typeof__(&function)),                            \
                   #function)

SAME_CALL(init, nvmlInit_v2);
SAME_CALL(init, nvmlInit);
SAME_CALL(shutdown, nvmlShutdown);
SAME_CALL(count, nvmlDeviceGetCount_v2);
SAME_CALL(count, nvmlDeviceGetCount);
SAME_CALL(handle, nvmlDeviceGetHandleByIndex_v2);
SAME_CALL(handle, nvmlDeviceGetHandleByIndex);
SAME_CALL(name, nvmlDeviceGetName);
SAME_CALL(uuid, nvmlDeviceGetUUID);
SAME_CALL(bar1, nvmlDeviceGetBAR1MemoryInfo);
SAME_CALL(clock, nvmlDeviceGetClockInfo);
SAME_CALL(clock_max, nvmlDeviceGetMaxClockInfo);
SAME_CALL(compute_instance, nvmlDeviceGetComputeInstanceId);
SAME_CALL(compute_mode, nvmlDeviceGetComputeMode);
SAME_CALL(compute_processes, nvmlDeviceGetComputeRunningProcesses_v2);
SAME_CALL(compute_processes, nvmlDeviceGetComputeRunningProcesses_v3);
SAME_CALL(compute_processes_v1, nvmlDeviceGetComputeRunningProcesses);
SAME_CALL(cuda_version, nvmlSystemGetCudaDriverVersion_v2);
SAME_CALL(cuda_version, nvmlSystemGetCudaDriverVersion);
SAME_CALL(decoder, nvmlDeviceGetDecoderUtilization);
SAME_CALL(driver_version, nvmlSystemGetDriverVersion);
SAME_CALL(ecc_errors, nvmlDeviceGetTotalEccErrors);
SAME_CALL(ecc_mode, nvmlDeviceGetEccMode);
SAME_CALL(encoder, nvmlDeviceGetEncoderUtilization);
SAME_CALL(energy, nvmlDeviceGetTotalEnergyConsumption);
SAME_CALL(error_string, nvmlErrorString);
SAME_CALL(event_set_create, nvmlEventSetCreate);
SAME_CALL(event_set_free, nvmlEventSetFree);
SAME_CALL(event_wait, nvmlEventSetWait_v2);
SAME_CALL(event_wait, nvmlEventSetWait);
SAME_CALL(fan, nvmlDeviceGetFanSpeed);
SAME_CALL(fan_v2, nvmlDeviceGetFanSpeed_v2);
SAME_CALL(fields, nvmlDeviceGetFieldValues);
SAME_CALL(gpu_instance, nvmlDeviceGetGpuInstanceId);
SAME_CALL(graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v2);
SAME_CALL(graphics_processes, nvmlDeviceGetGraphicsRunningProcesses_v3);
SAME_CALL(graphics_processes_v1, nvmlDeviceGetGraphicsRunningProcesses);
SAME_CALL(jpeg, nvmlDeviceGetJpgUtilization);
SAME_CALL(link_errors, nvmlDeviceGetNvLinkErrorCounter);
SAME_CALL(link_state, nvmlDeviceGetNvLinkState);
SAME_CALL(memory, nvmlDeviceGetMemoryInfo);
SAME_CALL(memory_v2, nvmlDeviceGetMemoryInfo_v2);
SAME_CALL(mig_attributes, nvmlDeviceGetAttributes_v2);
SAME_CALL(mig_attributes, nvmlDeviceGetAttributes);
SAME_CALL(mig_handle, nvmlDeviceGetMigDeviceHandleByIndex);
SAME_CALL(mig_max, nvmlDeviceGetMaxMigDeviceCount);
SAME_CALL(mig_mode, nvmlDeviceGetMigMode);
SAME_CALL(ofa, nvmlDeviceGetOfaUtilization);
SAME_CALL(pci_info, nvmlDeviceGetPciInfo_v3);
SAME_CALL(pci_info, nvmlDeviceGetPciInfo_v2);
SAME_CALL(pci_info, nvmlDeviceGetPciInfo);
SAME_CALL(pcie_generation, nvmlDeviceGetCurrPcieLinkGeneration);
SAME_CALL(pcie_generation_max, nvmlDeviceGetMaxPcieLinkGeneration);
SAME_CALL(pcie_replays, nvmlDeviceGetPcieReplayCounter);
SAME_CALL(pcie_throughput, nvmlDeviceGetPcieThroughput);
SAME_CALL(pcie_width, nvmlDeviceGetCurrPcieLinkWidth);
SAME_CALL(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth);
SAME_CALL(persistence, nvmlDeviceGetPersistenceMode);
SAME_CALL(power, nvmlDeviceGetPowerUsage);
SAME_CALL(power_default, nvmlDeviceGetPowerManagementDefaultLimit);
SAME_CALL(power_enforced, nvmlDeviceGetEnforcedPowerLimit);
SAME_CALL(power_limit, nvmlDeviceGetPowerManagementLimit);
SAME_CALL(power_range, nvmlDeviceGetPowerManagementLimitConstraints);
SAME_CALL(process_loads, nvmlDeviceGetProcessUtilization);
SAME_CALL(pstate, nvmlDeviceGetPerformanceState);
SAME_CALL(register_events, nvmlDeviceRegisterEvents);
SAME_CALL(remapped_rows, nvmlDeviceGetRemappedRows);
SAME_CALL(retired_pages, nvmlDeviceGetRetiredPages);
SAME_CALL(retired_pending, nvmlDeviceGetRetiredPagesPendingStatus);
SAME_CALL(samples, nvmlDeviceGetSamples);
SAME_CALL(temperature, nvmlDeviceGetTemperature);
SAME_CALL(threshold, nvmlDeviceGetTemperatureThreshold);
SAME_CALL(throttle_reasons, nvmlDeviceGetCurrentClocksEventReasons);
SAME_CALL(throttle_reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
SAME_CALL(utilization, nvmlDeviceGetUtilizationRates);
SAME_CALL(vbios_version, nvmlDeviceGetVbiosVersion);
SAME_CALL(violation, nvmlDeviceGetViolationStatus);

#pragma once

/* What an application has used, all its processes together. NAN: not known. */
struct run_usage {
    double cpu_seconds; /* user and system */
    double user_seconds;
    double system_seconds;
    double throttled_seconds; /* kept from running by a quota */
    double memory_bytes;
    double memory_peak_bytes; /* as the kernel counts it */
    double read_bytes;        /* from block devices */
    double written_bytes;
    double processes;
};

/* Covers profiler/analysis/profile.c. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "profiler/analysis/results.h"
#include "profiler/report/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A whole record, whatever its numbers: every report comes to an end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    int fd CLEANUP_CLOSE = memfd_create("record", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len) {
        return 0;
    }
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct results results CLEANUP_RESULTS = {0};
    struct error err = {0};
    if (results_read_record(path, &results, &err) < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    struct buf page CLEANUP_BUF = {0};
    summary_write(&results, &page);
    report_junit_write(&results, &page);
    report_html_write(&results, &page);
    return 0;
}

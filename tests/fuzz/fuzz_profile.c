/* Covers profiler/analysis/profile.c. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "profiler/analysis/profile.h"
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
    struct profile *profile CLEANUP_PROFILE = NULL;
    struct error err = {0};
    if (profile_read(path, &profile, &err) < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    struct buf page CLEANUP_BUF = {0};
    profile_write_summary(profile, &page);
    report_junit_write(profile, &page);
    report_html_write(profile, &page);
    return 0;
}

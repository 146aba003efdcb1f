#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Locals that clean up when their scope ends; these are for the C library's resources. Our types
 * have their own CLEANUP_… beside their destructors. */

#define CLEANUP(function) __attribute__((cleanup(function)))

static inline void cleanup_free(void *pointer) {
    free(*(void **)pointer);
}

static inline void cleanup_close(const int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
}

static inline void cleanup_fclose(FILE **file) {
    if (*file != NULL) {
        fclose(*file);
    }
}

#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_CLOSE CLEANUP(cleanup_close)
#define CLEANUP_FCLOSE CLEANUP(cleanup_fclose)

/* Hands a pointer over: yields it and leaves NULL behind. */
#define TAKE(pointer)                                                                              \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

/* Hands a file descriptor over: yields it and leaves -1 behind. */
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

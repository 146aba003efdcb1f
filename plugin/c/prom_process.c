#define _GNU_SOURCE 1
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prom_types.h"

/* What libprom shows of its own process, from /proc. It is for the program's page only: the
 * exporter measures the processes of its node itself. */

enum { MAX_FDS, MEMORY_MAX, CPU, MEMORY, RESIDENT, START, OPEN_FDS, N_FAMILIES };

/* Reads a number from the line of a file that has the format, else leaves `value` alone. False: no
 * such file. */
static bool scan(const char *path, const char *format, double *value) {
    char line[256];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, format, value);
    }
    return file != NULL && fclose(file) == 0;
}

static double read_limit(const char *path, const char *format) {
    double value = INFINITY; /* "unlimited" */
    return scan(path != NULL ? path : "/proc/self/limits", format, &value) ? value : NAN;
}

/* The second field, the name, may contain anything and ends at the last parenthesis. */
static void read_stat(const char *path, double *values) {
    char text[1024] = "";
    double user, system, start, size, pages, ticks = (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen(path != NULL ? path : "/proc/self/stat", "re");
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    const char *fields = strrchr(text, ')');
    if (fields != NULL &&
        sscanf(fields,
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf %*d %*d %*d "
               "%*d %*d %*d %lf %lf %lf",
               &user, &system, &start, &size, &pages) == 5) {
        values[CPU] = (user + system) / ticks;
        values[MEMORY] = size;
        values[RESIDENT] = pages * (double)sysconf(_SC_PAGESIZE);
        double boot = NAN;
        scan("/proc/stat", "btime %lf", &boot);
        values[START] = boot + start / ticks;
    }
}

static void count_fds(double *values) {
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return;
    }
    values[OPEN_FDS] = -3; /* ".", ".." and the directory itself */
    while (readdir(dir) != NULL) {
        values[OPEN_FDS]++;
    }
    closedir(dir);
}

void waap_prom_put_process(FILE *out, const struct prom_collector *collector) {
    static const struct {
        const char *name, *type, *help;
    } families[N_FAMILIES] = {
        [MAX_FDS] = {"max_fds", "gauge", "Maximum number of open file descriptors."},
        [MEMORY_MAX] = {"virtual_memory_max_bytes", "gauge",
                        "Maximum amount of virtual memory available in bytes."},
        [CPU] = {"cpu_seconds_total", "counter",
                 "Total user and system CPU time spent in seconds."},
        [MEMORY] = {"virtual_memory_bytes", "gauge", "Virtual memory size in bytes."},
        [RESIDENT] = {"resident_memory_bytes", "gauge", "Resident memory size in bytes."},
        [START] = {"start_time_seconds", "gauge",
                   "Start time of the process since unix epoch in seconds."},
        [OPEN_FDS] = {"open_fds", "gauge", "Number of open file descriptors."},
    };
    double values[N_FAMILIES];
    for (size_t i = 0; i < N_FAMILIES; i++) {
        values[i] = NAN;
    }
    values[MAX_FDS] = read_limit(collector->limits_path, "Max open files %lf");
    values[MEMORY_MAX] = read_limit(collector->limits_path, "Max address space %lf");
    read_stat(collector->stat_path, values);
    count_fds(values);
    for (size_t i = 0; i < N_FAMILIES; i++) {
        if (!isnan(values[i])) {
            fprintf(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s ",
                    families[i].name, families[i].help, families[i].name, families[i].type,
                    families[i].name);
            waap_prom_put_number(out, values[i]);
            fputc('\n', out);
        }
    }
}

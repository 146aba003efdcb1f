#include "profiler/run/session.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "profiler/analysis/report_text.h"
#include "profiler/run/output.h"

enum { MAX_BYTES = 1 << 16, MAX_PARENTS = 32 };

/* ---- the commit ---- */

/* DIR/NAME; empty if it cannot be read. */
static struct buf read_text(const char *dir, const char *name) {
    struct buf text = {0};
    char *path CLEANUP_FREE = file_path_join(dir, name);
    file_read(path, &text, NULL);
    return text;
}

/* The first line of a file, or NULL. The caller frees it. */
static char *first_line(const char *dir, const char *name) {
    struct buf text CLEANUP_BUF = read_text(dir, name);
    return text.len > 0 ? mem_strndup(text.data, strcspn(text.data, "\n")) : NULL;
}

/* The git directory of a work tree; .git may be a file with "gitdir: /path". */
static char *git_folder(const char *dir) {
    char *folder = file_path_join(dir, ".git");
    char *pointer CLEANUP_FREE = first_line(dir, ".git");
    if (pointer != NULL && strncmp(pointer, "gitdir: ", 8) == 0) {
        free(folder);
        folder = run_output_resolve(dir, pointer + 8, NULL);
    }
    return folder;
}

/* "<40 digits> refs/heads/main" */
static char *packed_ref(const char *folder, const char *ref) {
    struct buf text CLEANUP_BUF = read_text(folder, "packed-refs");
    struct buf end CLEANUP_BUF = {0};
    buf_printf(&end, " %s\n", ref);
    const char *found = strstr(buf_str(&text), buf_str(&end));
    if (found == NULL) {
        return NULL;
    }
    const char *line = memrchr(text.data, '\n', (size_t)(found - text.data));
    line = line != NULL ? line + 1 : text.data;
    return mem_strndup(line, (size_t)(found - line));
}

static char *find_ref(const char *folder, const char *ref) {
    char *common_name CLEANUP_FREE = first_line(folder, "commondir");
    char *common CLEANUP_FREE =
        common_name != NULL ? run_output_resolve(folder, common_name, NULL) : NULL;
    const char *const folders[] = {folder, common};
    char *commit = NULL;
    for (size_t i = 0; i < ARRAY_LEN(folders) && commit == NULL; i++) {
        if (folders[i] != NULL) {
            commit = first_line(folders[i], ref);
            commit = commit != NULL ? commit : packed_ref(folders[i], ref);
        }
    }
    return commit;
}

char *run_environment_commit(const char *dir) {
    char *at CLEANUP_FREE = run_output_resolve(NULL, dir, NULL);
    for (int i = 0; at != NULL && i < MAX_PARENTS; i++) {
        char *folder CLEANUP_FREE = git_folder(at);
        char *head CLEANUP_FREE = folder != NULL ? first_line(folder, "HEAD") : NULL;
        if (head != NULL) {
            bool ref = strncmp(head, "ref: ", 5) == 0;
            return ref ? find_ref(folder, head + 5) : TAKE(head);
        }
        char *slash = strrchr(at, '/');
        if (slash == NULL || slash == at) {
            return NULL;
        }
        *slash = '\0';
    }
    return NULL;
}

/* ---- first line of the record ---- */

static void write_file(struct run_record *record, const char *key, const char *dir,
                       const char *name) {
    char *line CLEANUP_FREE = first_line(dir, name);
    run_record_text(record, key, line);
}

/* A CI agent on the machine affects the measurements. */
static const char *find_agent(void) {
    return getenv("JENKINS_URL") != NULL      ? "jenkins"
           : getenv("GITLAB_CI") != NULL      ? "gitlab"
           : getenv("GITHUB_ACTIONS") != NULL ? "github"
                                              : NULL;
}

/* How a command will be contained and measured, found by a trial. */
static void write_launch(struct run_session *session, const char *image) {
    const struct settings *settings = session->config->settings;
    struct run_record *record = &session->record;
    struct run_cgroup cgroup = {0};
    struct error err;
    if (image != NULL) {
        run_record_text(record, "launch", "container");
    } else if (run_cgroup_create(&cgroup, settings_string(settings, "path.procfs"),
                                 settings_string(settings, "path.cgroupfs"), &err) < 0) {
        run_record_text(record, "launch", "process group");
        run_record_text(record, "no_cgroup", err.text);
    } else {
        run_record_text(record, "launch", "cgroup");
        run_record_text(record, "cgroup", cgroup_mode_name(cgroup.tree.mode));
        run_cgroup_finish(&cgroup);
    }
}

static void write_environment(struct run_session *session, const char *image,
                              const char *image_digest) {
    struct run_record *record = &session->record;
    const char *file = session->spec->file;
    char *copy CLEANUP_FREE = mem_strdup(file != NULL ? file : ".");
    char *commit CLEANUP_FREE = run_environment_commit(dirname(copy));
    const char *sysfs = settings_string(session->config->settings, "path.sysfs");
    char *cpufreq CLEANUP_FREE = file_path_join(sysfs, "devices/system/cpu/cpu0/cpufreq");
    struct utsname system;
    json_open(&record->line, "environment", '{');
    if (uname(&system) == 0) {
        run_record_text(record, "kernel", system.release);
        run_record_text(record, "machine", system.machine);
        run_record_text(record, "node", system.nodename);
    }
    write_file(record, "model", settings_string(session->config->settings, "path.procfs"),
               "device-tree/model");
    run_record_number(record, "cpus", (double)sysconf(_SC_NPROCESSORS_ONLN));
    run_record_number(record, "memory_bytes",
                      (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    write_file(record, "cpu_governor", cpufreq, "scaling_governor");
    write_file(record, "cpu_frequency_khz", cpufreq, "scaling_cur_freq");
    write_file(record, "cpu_frequency_max_khz", cpufreq, "scaling_max_freq");
    run_probe_describe(session->probe, record);
    write_launch(session, image);
    run_record_text(record, "image", image);
    run_record_text(record, "image_digest", image_digest);
    run_record_text(record, "commit", commit);
    run_record_text(record, "agent", find_agent());
    json_close(&record->line, '}');
}

static void write_gates(struct run_record *record, const struct run_spec *spec) {
    struct buf *line = &record->line;
    json_open(line, "gates", '[');
    for (size_t i = 0; i < spec->n_gates; i++) {
        json_open(line, NULL, '{');
        run_record_text(record, "metric", spec->gates[i].metric);
        run_record_text(record, "target", spec->gates[i].target);
        for (size_t k = 0; k < N_GATE_KINDS; k++) {
            run_record_number(record, gate_kinds[k], spec->gates[i].limits[k]);
        }
        json_close(line, '}');
    }
    json_close(line, ']');
}

void run_environment_write(struct run_session *session, const char *image,
                           const char *image_digest) {
    struct run_record *record = &session->record;
    const struct run_spec *spec = session->spec;
    run_record_begin(record, "run");
    run_record_text(record, "format", "waap-run/1");
    run_record_number(record, "began", clock_wall_seconds());
    run_record_text(record, "waap", VERSION_TEXT);
    json_open(&record->line, "application", '{');
    run_record_text(record, "name", spec->name);
    run_record_text(record, "version", spec->version);
    run_record_text(record, "file", spec->file);
    json_close(&record->line, '}');
    write_environment(session, image, image_digest);
    json_open(&record->line, "settings", '{');
    run_record_number(record, "interval", (double)spec->interval_ms / 1e3);
    run_record_number(record, "baseline", (double)spec->baseline_ms / 1e3);
    run_record_number(record, "cooldown", (double)spec->cooldown_ms / 1e3);
    run_record_number(record, "cooldown_max", (double)spec->cooldown_max_ms / 1e3);
    run_record_number(record, "grace", (double)spec->grace_ms / 1e3);
    run_record_number(record, "max_runtime", (double)spec->max_runtime_ms / 1e3);
    if (spec->formats != NULL) {
        text_put_list(&record->line, "formats", spec->formats);
    }
    json_close(&record->line, '}');
    write_gates(record, spec);
    run_record_end(record);
}

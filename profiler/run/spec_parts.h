#pragma once

#include "profiler/run/key.h"
#include "profiler/run/spec.h"

/* Readers for the parts of the profiling section, for the table of its keys. */

enum { RUN_SPEC_DAY_MS = 24 * 60 * 60 * 1000 };

/* One item of a list, into the array `to` points to: struct run_service, struct run_gate. */
void run_spec_read_service(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                           void *to);
void run_spec_read_gate(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to);

/* Bits of enum run_metrics, int64_t; names of formats, const char *const *. */
void run_spec_read_metrics(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to);
void run_spec_read_formats(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to);

#pragma once

/* The names that C programs know from libprom (prometheus-client-c), over waap: a program that was
 * written for libprom is compiled with `pkg-config --cflags --libs waap-prom`, and its metrics go
 * to the exporter of its node, whether registered or not. What waap/plugin.h says of threads, fork
 * and exit holds here, too. Unlike there, the caller's texts are copied, label values may hold
 * anything, gauges can be set below 0, and buckets are found by histogram_quantile().
 *
 * Calls that return int return 0, or 1 where nothing was done; destroying NULL is 0. The headers
 * beside this one, which libprom has, too, all are this one. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROM_API __attribute__((visibility("default")))

typedef struct prom_metric prom_metric_t;
typedef prom_metric_t prom_counter_t;
typedef prom_metric_t prom_gauge_t;
typedef prom_metric_t prom_histogram_t;
typedef struct prom_metric_sample prom_metric_sample_t;
typedef struct prom_metric_sample_histogram prom_metric_sample_histogram_t;
typedef struct prom_collector prom_collector_t;
typedef struct prom_collector_registry prom_collector_registry_t;
typedef struct prom_map prom_map_t;
typedef struct prom_map_node prom_map_node_t;
typedef struct prom_linked_list prom_linked_list_t;

typedef struct prom_histogram_buckets {
    int count;
    const double *upper_bounds;
} prom_histogram_buckets_t;

/* What libprom names the C library's, prom_free() for the text of the bridge above all. */
#define prom_malloc malloc
#define prom_realloc realloc
#define prom_strdup strdup
#define prom_free free

/* ---- metrics: label values come in the order of the keys; NULL where there are none ---- */

PROM_API prom_counter_t *prom_counter_new(const char *name, const char *help,
                                          size_t label_key_count, const char **label_keys);
PROM_API int prom_counter_destroy(prom_counter_t *self);
PROM_API int prom_counter_inc(prom_counter_t *self, const char **label_values);
PROM_API int prom_counter_add(prom_counter_t *self, double r_value, const char **label_values);

PROM_API prom_gauge_t *prom_gauge_new(const char *name, const char *help, size_t label_key_count,
                                      const char **label_keys);
PROM_API int prom_gauge_destroy(prom_gauge_t *self);
PROM_API int prom_gauge_inc(prom_gauge_t *self, const char **label_values);
PROM_API int prom_gauge_dec(prom_gauge_t *self, const char **label_values);
PROM_API int prom_gauge_add(prom_gauge_t *self, double r_value, const char **label_values);
PROM_API int prom_gauge_sub(prom_gauge_t *self, double r_value, const char **label_values);
PROM_API int prom_gauge_set(prom_gauge_t *self, double r_value, const char **label_values);

/* Takes the buckets over and destroys them with itself; NULL: the default ones. */
PROM_API prom_histogram_t *prom_histogram_new(const char *name, const char *help,
                                              prom_histogram_buckets_t *buckets,
                                              size_t label_key_count, const char **label_keys);
PROM_API int prom_histogram_destroy(prom_histogram_t *self);
PROM_API int prom_histogram_observe(prom_histogram_t *self, double value,
                                    const char **label_values);

/* 5 ms to 10 s. */
PROM_API extern prom_histogram_buckets_t *prom_histogram_default_buckets;
PROM_API prom_histogram_buckets_t *prom_histogram_buckets_new(size_t count, double bucket, ...);
PROM_API prom_histogram_buckets_t *prom_histogram_buckets_linear(double start, double width,
                                                                 size_t count);
PROM_API prom_histogram_buckets_t *prom_histogram_buckets_exponential(double start, double factor,
                                                                      size_t count);
PROM_API int prom_histogram_buckets_destroy(prom_histogram_buckets_t *self);
PROM_API size_t prom_histogram_buckets_count(prom_histogram_buckets_t *self);

/* ---- series: found once, used often; they live as long as the program ---- */

PROM_API prom_metric_sample_t *prom_metric_sample_from_labels(prom_metric_t *self,
                                                              const char **label_values);
PROM_API prom_metric_sample_histogram_t *
prom_metric_sample_histogram_from_labels(prom_metric_t *self, const char **label_values);
PROM_API int prom_metric_sample_add(prom_metric_sample_t *self, double r_value);
PROM_API int prom_metric_sample_sub(prom_metric_sample_t *self, double r_value);
PROM_API int prom_metric_sample_set(prom_metric_sample_t *self, double r_value);
PROM_API int prom_metric_sample_histogram_observe(prom_metric_sample_histogram_t *self,
                                                  double value);

/* ---- collectors: they own their metrics ---- */

/* Called before metrics are sent, to set them, on the library's thread or in the bridge, never by
 * two threads at once; what it returns is not used. A thread that destroys a collector or a
 * registry waits for the call to end, and must not hold a lock that a collect function takes. */
typedef prom_map_t *prom_collect_fn(prom_collector_t *self);

PROM_API prom_collector_t *prom_collector_new(const char *name);
/* The process_* families of the page, of this process or of such files; the exporter does not get
 * them, as it measures the processes of its node itself. The default registry has them. */
PROM_API prom_collector_t *prom_collector_process_new(const char *limits_path,
                                                      const char *stat_path);
PROM_API int prom_collector_destroy(prom_collector_t *self);
PROM_API void prom_collector_free_generic(void *gen);
PROM_API int prom_collector_destroy_generic(void *gen);
PROM_API int prom_collector_add_metric(prom_collector_t *self, prom_metric_t *metric);
PROM_API int prom_collector_set_collect_fn(prom_collector_t *self, prom_collect_fn *fn);

/* ---- registries: they own their collectors ---- */

PROM_API extern prom_collector_registry_t *PROM_COLLECTOR_REGISTRY_DEFAULT;

PROM_API int prom_collector_registry_default_init(void);
PROM_API prom_collector_registry_t *prom_collector_registry_new(const char *name);
PROM_API int prom_collector_registry_destroy(prom_collector_registry_t *self);
PROM_API int prom_collector_registry_enable_process_metrics(prom_collector_registry_t *self);
/* Into the default registry; ends the program where that fails. */
PROM_API prom_metric_t *prom_collector_registry_must_register_metric(prom_metric_t *metric);
PROM_API int prom_collector_registry_register_metric(prom_metric_t *metric);
PROM_API int prom_collector_registry_register_collector(prom_collector_registry_t *self,
                                                        prom_collector_t *collector);
/* The registry's metrics in Prometheus' text format. The caller frees it; NULL: no memory. */
PROM_API const char *prom_collector_registry_bridge(prom_collector_registry_t *self);
/* 0: Prometheus would take the name. */
PROM_API int prom_collector_registry_validate_metric_name(prom_collector_registry_t *self,
                                                          const char *metric_name);

/* ---- promhttp.h's: the registry that is served; NULL: the default one ---- */

PROM_API void promhttp_set_active_collector_registry(prom_collector_registry_t *active_registry);
PROM_API prom_collector_registry_t *promhttp_get_active_collector_registry(void);

#ifdef __cplusplus
}
#endif

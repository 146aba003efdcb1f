#include "exporter/push_keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"

enum { MAX_NAME_LEN = 256, MAX_HELP_LEN = 1024 };

#define EXPIRE_INTERVAL_NS CLOCK_NS_PER_SEC

struct push_keeper {
    struct loop *loop;
    struct push_store *store;
    struct loop_timer expire;
};

static size_t size_setting(const struct settings *settings, const char *name) {
    return (size_t)settings_int(settings, name);
}

static struct push_store_config read_settings(const struct settings *settings) {
    return (struct push_store_config){
        .limits =
            {
                .max_owners = size_setting(settings, "push.max-plugins"),
                .max_series = size_setting(settings, "push.max-series"),
                .max_owner_series = size_setting(settings, "push.max-series-per-plugin"),
                .max_labels = size_setting(settings, "push.max-labels"),
                .max_name_len = MAX_NAME_LEN,
                .max_value_len = size_setting(settings, "push.max-label-length"),
                .max_help_len = MAX_HELP_LEN,
                .max_buckets = size_setting(settings, "push.max-buckets"),
            },
        .ttl_ms = settings_duration_ms(settings, "push.ttl"),
    };
}

static void expire_fire(struct loop_timer *timer) {
    struct push_keeper *keeper = CONTAINER_OF(timer, struct push_keeper, expire);
    push_store_expire(keeper->store);
    timer->due_ns = clock_monotonic_ns() + EXPIRE_INTERVAL_NS;
}

int push_keeper_create(struct loop *loop, const struct settings *settings,
                       const struct collector *const *collectors, struct push_keeper **ret_keeper,
                       struct error *err) {
    struct push_keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL) {
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    struct push_store_config config = read_settings(settings);
    config.collectors = collectors;
    int r = push_store_create(&config, &keeper->store, err);
    if (r < 0) {
        free(keeper);
        return r;
    }
    keeper->loop = loop;
    keeper->expire = (struct loop_timer){.fire = expire_fire};
    loop_timer_add(loop, &keeper->expire);
    *ret_keeper = keeper;
    return 0;
}

void push_keeper_destroy(struct push_keeper *keeper) {
    if (keeper == NULL) {
        return;
    }
    loop_timer_remove(keeper->loop, &keeper->expire);
    push_store_destroy(keeper->store);
    free(keeper);
}

void push_keeper_configure(struct push_keeper *keeper, const struct settings *settings) {
    struct push_store_config config = read_settings(settings);
    push_store_configure(keeper->store, &config);
}

struct push_store *push_keeper_store(struct push_keeper *keeper) {
    return keeper->store;
}

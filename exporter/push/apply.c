#include <errno.h>
#include <stdlib.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

/* A batch is applied in two strides. The first, in push_prepare.c, finds or makes every family and
 * series and checks every value: it can fail, and then takes back what it made. The second changes
 * values and removes what is replaced, and cannot fail. */

/* ---- the second stride ---- */

static void set_ttl(struct push_store *store, struct push_series *series, int64_t ttl_ms) {
    struct push_owner *owner = series->owner;
    owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    owner->n_with_ttl += ttl_ms > 0 ? 1 : 0;
    series->ttl_ms = ttl_ms;
    push_table_write(store->table, &(struct push_change){series->ttl, (double)ttl_ms}, 1);
}

/* What a plugin does not say stays as it was; a group's series are for ever unless their last push
 * says otherwise. */
static bool changes_ttl(const struct push_series *series, const struct push_update *update) {
    bool said = update->ttl_ms != PUSH_TTL_DEFAULT;
    return said ? update->ttl_ms != series->ttl_ms : series->owner->group && series->ttl_ms > 0;
}

/* A series that is set must not be seen with a value it never had, not even after a crash: it is
 * given the value before it counts. */
static void preset(const struct push_step *step, const struct push_update *update) {
    if (step->series != NULL && update->op == PUSH_SET && step->series->entry->commit == 0) {
        push_value_preset(step, update);
    }
}

static void perform(struct push_store *store, const struct push_step *step,
                    const struct push_update *update, int64_t now_ms) {
    struct push_series *series = step->series;
    push_value_apply(store, step, update, now_ms);
    if (step->total != NULL) {
        push_series_count_total(store, series, step->total, now_ms);
    }
    series->updated_ms = now_ms;
    series->start = store->applying->batch->start;
    series->owner->seen_ms = now_ms;
    if (changes_ttl(series, update)) {
        set_ttl(store, series, update->ttl_ms);
    }
    if (update->help != NULL && !series->family->has_help) {
        push_family_take_help(store, series->family, update->help);
    }
}

/* Whether a batch that replaces leaves the series out. */
static bool is_replaced(const struct push_store *store, const struct push_series *series,
                        enum push_mode mode) {
    if (series->hidden || series->family->hidden) {
        return true;
    }
    bool named = mode == PUSH_REPLACE_ALL || series->family->batch == store->batch;
    return mode != PUSH_MERGE && named && series->batch != store->batch;
}

/* What goes at the end of a batch that replaces. */
struct replaced {
    size_t n_series;
    size_t text_size;
    size_t table_size;
};

static struct replaced count_replaced(const struct push_store *store,
                                      const struct push_owner *owner, enum push_mode mode) {
    struct replaced replaced = {0};
    for (struct push_link *i = owner->series.next; i != &owner->series; i = i->next) {
        const struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        const struct push_family *family = series->family;
        if (!is_replaced(store, series, mode)) {
            continue;
        }
        bool is_first = family->series.next == &series->of_family;
        bool pays = is_first && family->batch != store->batch; /* else the next one of it does */
        replaced.n_series++;
        replaced.text_size += series->text_size;
        replaced.table_size += push_table_cost(series->entry->size);
        replaced.table_size += pays ? push_table_cost(family->entry->size) : 0;
        for (const struct push_total *total = series->totals; total != NULL; total = total->next) {
            replaced.table_size += push_table_cost(total->entry->size);
        }
    }
    return replaced;
}

/* Of whichever owner. */
static bool sweep_merged(struct push_store *store, size_t n) {
    for (; n > 0 && store->n_replaced > 0; n--) {
        push_series_destroy(store, store->replaced[--store->n_replaced]);
    }
    for (; n > 0 && store->n_hidden > 0; n--) {
        struct push_family *family = store->hidden[store->n_hidden - 1];
        store->n_hidden -= family->n_series == 1 ? 1 : 0; /* it goes with the last one */
        push_series_destroy(store,
                            CONTAINER_OF(family->series.next, struct push_series, of_family));
    }
    return store->n_replaced > 0 || store->n_hidden > 0;
}

/* Looks at about `n` series; true: there are more. */
static bool sweep(struct push_store *store, struct push_applying *applying, size_t n) {
    enum push_mode mode = applying->batch->mode;
    if (mode == PUSH_MERGE) {
        return sweep_merged(store, n);
    }
    const struct push_link *end = &applying->owner->series;
    for (; n > 0 && applying->next_swept != end; n--) {
        struct push_series *series =
            CONTAINER_OF(applying->next_swept, struct push_series, of_owner);
        applying->next_swept = applying->next_swept->next;
        if (is_replaced(store, series, mode)) {
            push_series_destroy(store, series);
        }
    }
    return applying->next_swept != end;
}

/* ---- both, in turns ---- */

static size_t end_of_turn(const struct push_applying *applying, size_t n) {
    size_t left = applying->batch->n_updates - applying->next;
    return applying->next + (n < left ? n : left);
}

static int prepare_some(struct push_store *store, struct push_applying *applying, size_t n) {
    const struct push_batch *batch = applying->batch;
    size_t end = end_of_turn(applying, n);
    for (; applying->next < end; applying->next++) {
        size_t i = applying->next;
        store->n_steps = i + 1;
        struct push_owner *whose = batch->updates[i].owner;
        int r = push_prepare(store, whose != NULL ? whose : applying->owner, batch,
                             &batch->updates[i], &store->steps[i], &applying->error);
        if (r < 0) {
            applying->failed = i;
            return r;
        }
    }
    return 0;
}

/* What the batch leaves must fit, once all of it is known. */
static int check_result(const struct push_store *store, struct push_applying *applying) {
    const struct push_owner *owner = applying->owner;
    enum push_mode mode = applying->batch->mode;
    if (mode == PUSH_MERGE) {
        return 0;
    }
    struct replaced replaced = count_replaced(store, owner, mode);
    size_t n_series = store->series.n_items + store->n_replaced; /* those are not in the index */
    applying->failed = applying->batch->n_updates;
    int r = push_check_room(store, owner, n_series - replaced.n_series, 0, replaced.n_series,
                            "push", &applying->error);
    if (r < 0) {
        return r;
    }
    const struct push_share *share = owner->share;
    r = push_check_text_sizes(store, share, store->text_size - replaced.text_size,
                              share != NULL ? share->text_size - replaced.text_size : 0, "push",
                              &applying->error);
    return r < 0 ? r
                 : push_check_table(store, owner, 0, replaced.table_size, "push", &applying->error);
}

static void preset_some(const struct push_store *store, struct push_applying *applying, size_t n) {
    size_t end = end_of_turn(applying, n);
    for (; applying->next < end; applying->next++) {
        preset(&store->steps[applying->next], &applying->batch->updates[applying->next]);
    }
}

static void perform_some(struct push_store *store, struct push_applying *applying, size_t n) {
    size_t end = end_of_turn(applying, n);
    for (; applying->next < end; applying->next++) {
        const struct push_step *step = &store->steps[applying->next];
        if (step->series != NULL) {
            perform(store, step, &applying->batch->updates[applying->next], applying->now_ms);
        }
    }
}

static void note_push(struct push_store *store, struct push_owner *owner, double seconds) {
    if (owner->group && owner->push_seconds != seconds) {
        owner->push_seconds = seconds;
        push_persist_times(store, owner);
    }
}

/* For the batch's own group, and for those that its updates name. */
static void note_pushes(struct push_store *store, const struct push_applying *applying) {
    const struct push_batch *batch = applying->batch;
    if (!applying->owner->group && batch->n_updates > 0 && batch->updates[0].owner == NULL) {
        return; /* one plugin's, as most are */
    }
    double seconds = clock_wall_seconds();
    note_push(store, applying->owner, seconds);
    for (size_t i = 0; i < batch->n_updates; i++) {
        if (batch->updates[i].owner != NULL) {
            note_push(store, batch->updates[i].owner, seconds);
        }
    }
}

/* What a large batch needed is not kept for small ones. */
static void forget_steps(struct push_store *store) {
    enum { MANY_STEPS = 16 << 10 };
    if (store->cap_steps > MANY_STEPS) {
        free(TAKE(store->steps));
        store->cap_steps = 0;
    }
    store->n_steps = 0;
}

static void finish(struct push_store *store, struct push_applying *applying) {
    if (applying->code < 0) {
        push_store_count_refused(store, applying->code);
    } else {
        store->updates += applying->batch->n_updates;
        note_pushes(store, applying);
    }
    store->n_fresh = 0;
    store->n_replaced = 0;
    store->n_hidden = 0;
    forget_steps(store);
    applying->owner->seen_ms = applying->now_ms;
    applying->over = true;
    store->applying = NULL;
    pthread_mutex_unlock(&store->lock);
}

static void begin(struct push_store *store, struct push_applying *applying) {
    store->batch++;
    store->id_before = store->last_id;
    applying->stage = PUSH_STAGE_PREPARE;
    applying->code = 0;
    applying->next = 0;
    applying->failed = 0;
}

void push_store_apply_begin(struct push_store *store, struct push_applying *applying,
                            struct push_owner *owner, const struct push_batch *batch) {
    push_store_lock(store);
    store->applying = applying;
    store->n_steps = 0;
    begin(store, applying);
    applying->owner = owner;
    applying->batch = batch;
    applying->over = false;
    applying->made_room = false;
    applying->now_ms = push_store_now_ms(store);
    if (push_grow((void **)&store->steps, &store->cap_steps, batch->n_updates,
                  sizeof(struct push_step)) < 0) {
        applying->code = error_set(&applying->error, -ENOMEM, "out of memory");
        finish(store, applying);
    }
}

static void commit(struct push_store *store, struct push_applying *applying) {
    push_table_commit(store->table);
    applying->stage = PUSH_STAGE_PERFORM;
    applying->next = 0;
}

static void take_prepare_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    bool is_last = end_of_turn(applying, n) == applying->batch->n_updates;
    int r = prepare_some(store, applying, n);
    r = r == 0 && is_last ? check_result(store, applying) : r;
    if (r < 0) {
        applying->code = r;
        applying->stage = PUSH_STAGE_TAKE_BACK;
    } else if (is_last && store->n_fresh > 0) {
        applying->stage = PUSH_STAGE_PRESET;
        applying->next = 0;
    } else if (is_last) {
        commit(store, applying);
    }
}

static void take_preset_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    preset_some(store, applying, n);
    if (applying->next == applying->batch->n_updates) {
        commit(store, applying);
    }
}

static void take_perform_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    perform_some(store, applying, n);
    if (applying->next < applying->batch->n_updates) {
        return;
    }
    applying->stage = PUSH_STAGE_SWEEP;
    applying->next_swept = applying->owner->series.next;
    if (applying->batch->mode == PUSH_MERGE && !sweep(store, applying, 0)) {
        finish(store, applying);
    }
}

static void take_sweep_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    if (!sweep(store, applying, n)) {
        finish(store, applying);
    }
}

/* If the table is full of dead entries it is copied, then the batch starts over. */
static void take_back_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    if (push_take_back(store, n)) {
        return;
    }
    bool may_have_room = applying->code == -ENOSPC && !applying->made_room;
    applying->made_room = true;
    if (!may_have_room || !push_persist_begin_room(store)) {
        finish(store, applying);
    }
}

static void take_copy_turn(struct push_store *store, struct push_applying *applying, size_t n) {
    if (push_persist_compact_some(store, n)) {
        return;
    }
    if (push_table_dead(store->table) > 0) {
        finish(store, applying);
    } else {
        begin(store, applying);
    }
}

bool push_store_apply_some(struct push_store *store, struct push_applying *applying, size_t n) {
    static void (*const stages[])(struct push_store *, struct push_applying *, size_t) = {
        [PUSH_STAGE_PREPARE] = take_prepare_turn, [PUSH_STAGE_PRESET] = take_preset_turn,
        [PUSH_STAGE_PERFORM] = take_perform_turn, [PUSH_STAGE_SWEEP] = take_sweep_turn,
        [PUSH_STAGE_TAKE_BACK] = take_back_turn,
    };
    if (applying->over) {
        return false;
    }
    if (store->compaction != NULL) {
        take_copy_turn(store, applying, n);
    } else {
        stages[applying->stage](store, applying, n);
    }
    return !applying->over;
}

bool push_store_is_busy(const struct push_store *store) {
    return store->applying != NULL || store->compaction != NULL || store->copy != NULL ||
           atomic_load_explicit(&store->is_collected, memory_order_relaxed);
}

void push_store_settle(struct push_store *store) {
    while (store->applying != NULL) {
        push_store_apply_some(store, store->applying, SIZE_MAX);
    }
    while (store->compaction != NULL) {
        push_store_tidy(store, SIZE_MAX);
    }
    while (store->copy != NULL) {
        push_store_copy_some(store, SIZE_MAX);
    }
}

void push_store_lock(struct push_store *store) {
    push_store_settle(store);
    pthread_mutex_lock(&store->lock);
}

void push_store_unlock(struct push_store *store) {
    pthread_mutex_unlock(&store->lock);
}

int push_store_apply(struct push_store *store, struct push_owner *owner,
                     const struct push_batch *batch, size_t *ret_failed, struct error *err) {
    struct push_applying applying;
    push_store_apply_begin(store, &applying, owner, batch);
    while (push_store_apply_some(store, &applying, SIZE_MAX)) {
    }
    if (applying.code < 0 && ret_failed != NULL) {
        *ret_failed = applying.failed;
    }
    return applying.code < 0 ? error_set(err, applying.code, "%s", applying.error.text) : 0;
}

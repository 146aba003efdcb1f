#pragma once

#include "exporter/channel/knobs.h"
#include "exporter/channel/pywaggle.h"
#include "exporter/channel/socket.h"
#include "exporter/demo/demo.h"
#include "exporter/demo/plugin.h"
#include "exporter/engine/engine.h"
#include "exporter/http/server.h"
#include "exporter/loop/loop.h"
#include "exporter/loop/notify.h"
#include "exporter/loop/worker.h"
#include "exporter/push/keeper.h"
#include "exporter/settings/config.h"

struct http_listing;
struct http_upload;
struct page;

/* `waap serve` as a whole: the context of its HTTP server. */
struct daemon {
    const struct collector *const *collectors;
    int argc; /* of `serve`: read again on every reload */
    char **argv;
    struct config *config;
    struct demo *demo; /* NULL: no demo */
    struct loop *loop;
    struct notify *notify;
    struct engine *engine;
    struct push_keeper *push_keeper;
    struct push_store *push_store; /* the keeper's */
    struct push_log *push_log;     /* the same */
    struct pywaggle *pywaggle;
    struct push_socket *push_socket;
    struct knobs *knobs;
    struct demo_plugins *demo_plugins; /* NULL: no demo */
    struct self_metrics *self_metrics;
    struct http_server *http;
    struct http_upload *uploads; /* large ones: the one under way, then those that wait */
    struct knobs_listener knobs_listener;
    struct knobs_poll *polls;      /* requests that wait for a change of knobs */
    struct http_listing *listings; /* the one under way, then those that wait */
    struct page *pages;            /* being built or sent */
    struct in6_addr scrapers[64];  /* the first ones */
    size_t n_scrapers;
    struct worker *page_worker;
    struct worker *reload_worker;
    struct web_watch *web_watch;
    struct loop_source signals; /* a signalfd */
    bool stopping;
    bool reload_ok;
    double start_wall_seconds;
    double reload_wall_seconds; /* when the active configuration was read */
};

static inline struct daemon *daemon_of(const struct http_request *request) {
    return request->context;
}

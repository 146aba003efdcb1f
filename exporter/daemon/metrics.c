#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/push_collector.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/gzip.h"
#include "exporter/core/list.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/self_metrics.h"
#include "exporter/http/process_metrics.h"
#include "exporter/metrics/exposition.h"
#include "exporter/net/network.h"

/* GET /metrics. A request starts or joins a round of the engine; then its page is written and
 * compressed on a worker. Requests that need the same page of the same results share it. */

/* No scrape waits longer, whatever its header demands. */
enum { SCRAPE_MAX_SECONDS = 120 };

/* Requests with the same key share a page. */
struct page_key {
    uint64_t generation; /* of the engine's entries */
    uint64_t want;
    uint64_t missed;
    struct exposition_choice choice;
    bool gzip;
};

/* The ways to send a page. */
enum page_form {
    PAGE_PACKED,
    PAGE_IN_PIECES, /* straight from the parts */
    PAGE_COPIED,    /* block by block */
    PAGE_FORMS,
};

/* A request for metrics: it waits for the collectors, then for its page. */
struct scraper {
    struct http_request *request;
    struct engine_scrape scrape;
    struct page *page;            /* NULL: not known yet */
    struct scraper *next_waiting; /* for the same page */
};

struct page {
    unsigned refs; /* of the job that builds it, and of each request for it */
    struct page_key key;
    struct http_sending sending;
    struct daemon *daemon;
    struct worker_job job;
    bool with_process;                          /* with the process_* metrics */
    struct scraper *waiting;                    /* until it is built */
    struct MHD_Response *responses[PAGE_FORMS]; /* created on demand */
    bool built;
    atomic_bool unwanted; /* no request waits for it any more */
    struct page *next;    /* of daemon.pages */

    struct exposition_page text; /* refers to the parts */
    size_t *piece_ends;          /* of the text's pieces: where each ends; for PAGE_COPIED */
    struct buf compressed;       /* the text, if gzip was requested */
    uint64_t duplicates[ENGINE_MAX_COLLECTORS + 3];
    size_t n_parts;
    struct exposition_part *parts[ENGINE_MAX_COLLECTORS + 3]; /* collectors, knobs, self, process */
};

static void drop_text(struct page *page) {
    exposition_page_finish(&page->text);
    for (size_t i = 0; i < page->n_parts; i++) {
        exposition_part_unref(page->parts[i]);
    }
    page->n_parts = 0;
}

static void page_unref(struct page *page) {
    if (page == NULL || --page->refs > 0) {
        return;
    }
    *LIST_LINK(&page->daemon->pages, page, next) = page->next;
    for (size_t i = 0; i < PAGE_FORMS; i++) {
        if (page->responses[i] != NULL) {
            MHD_destroy_response(page->responses[i]);
        }
    }
    drop_text(page);
    free(page->piece_ends);
    buf_finish(&page->compressed);
    free(page);
}

/* ---- building a page, on the worker ---- */

static void page_run(struct worker_job *job) {
    struct page *page = CONTAINER_OF(job, struct page, job);
    struct exposition_page *text = &page->text;
    if (atomic_load(&page->unwanted)) {
        return;
    }
    if (page->with_process) {
        page->parts[page->n_parts++] = process_metrics_part();
    }
    exposition_page_write(text, page->key.choice, page->parts, page->n_parts, page->duplicates);
    if (page->key.gzip) {
        gzip_compress(text->pieces, text->n_pieces, &page->compressed);
    }
    page->sending.len = page->key.gzip ? page->compressed.len : text->len;
    if (page->key.gzip) {
        drop_text(page);
    }
}

/* ---- sending a page, on the loop ---- */

static void find_ends(struct page *page) {
    const struct exposition_page *text = &page->text;
    free(page->piece_ends); /* of an earlier attempt */
    page->piece_ends = mem_zalloc(text->n_pieces + 1, sizeof(*page->piece_ends));
    size_t end = 0;
    for (size_t i = 0; i < text->n_pieces; i++) {
        end += text->pieces[i].iov_len;
        page->piece_ends[i] = end;
    }
}

/* The piece with the byte at `at`. */
static size_t find_piece(const struct page *page, size_t at) {
    size_t first = 0, n = page->text.n_pieces;
    while (n > 0) {
        size_t half = n / 2;
        bool before = page->piece_ends[first + half] <= at;
        first = before ? first + half + 1 : first;
        n = before ? n - half - 1 : half;
    }
    return first;
}

/* Copies the text from `at` on. */
static ssize_t read_text(void *context, uint64_t at, char *to, size_t max) {
    const struct page *page = context;
    const struct exposition_page *text = &page->text;
    size_t copied = 0;
    for (size_t i = find_piece(page, at); i < text->n_pieces && copied < max; i++) {
        size_t left = page->piece_ends[i] - (at + copied);
        size_t n = left < max - copied ? left : max - copied;
        memcpy(to + copied, (const char *)text->pieces[i].iov_base + text->pieces[i].iov_len - left,
               n);
        copied += n;
    }
    return (ssize_t)copied;
}

static struct MHD_Response *respond_by_copies(struct page *page) {
    enum { MAX_BLOCK = 128 << 10 };
    size_t block = page->text.len < MAX_BLOCK ? page->text.len + 1 : MAX_BLOCK;
    find_ends(page);
    return MHD_create_response_from_callback(page->text.len, block, read_text, page, NULL);
}

/* The page outlives its responses. */
static struct MHD_Response *make_response(struct page *page, enum page_form form) {
    switch (form) {
    case PAGE_PACKED:
        return MHD_create_response_from_buffer(page->compressed.len, page->compressed.data,
                                               MHD_RESPMEM_PERSISTENT);
    case PAGE_IN_PIECES: /* struct MHD_IoVec is a struct iovec */
        return MHD_create_response_from_iovec((const struct MHD_IoVec *)page->text.pieces,
                                              (unsigned)page->text.n_pieces, NULL, NULL);
    default:
        return respond_by_copies(page);
    }
}

/* libmicrohttpd copies the list of pieces next to the request's head, and aborts if it does not
 * fit. */
static enum page_form choose_form(const struct page *page, const struct http_request *request) {
    if (page->key.gzip) {
        return PAGE_PACKED;
    }
    size_t list_size = page->text.n_pieces * sizeof(struct MHD_IoVec);
    return http_has_room(request, list_size) ? PAGE_IN_PIECES : PAGE_COPIED;
}

/* The response for the request; NULL if libmicrohttpd cannot create it. */
static struct MHD_Response *response_for(struct page *page, const struct http_request *request) {
    enum page_form form = choose_form(page, request);
    struct MHD_Response *response = page->responses[form];
    if (response != NULL) {
        return response;
    }
    response = make_response(page, form);
    if (response == NULL) {
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            exposition_content_type(page->key.choice));
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
    if (page->key.gzip) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    http_add_headers(page->daemon->http, response);
    page->responses[form] = response;
    return response;
}

static void page_reply(struct page *page, struct http_request *request) {
    struct MHD_Response *response = response_for(page, request);
    if (response != NULL) {
        http_sending_begin(request, &page->sending);
        http_reply_shared(request, MHD_HTTP_OK, response);
    } else {
        http_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "page: cannot create a response");
    }
}

static void page_done(struct worker_job *job) {
    struct page *page = CONTAINER_OF(job, struct page, job);
    struct engine *engine = page->daemon->engine;
    page->built = true;
    for (size_t i = 0; i < engine_n_collectors(engine); i++) {
        engine_add_duplicates(engine, i, page->duplicates[i]);
    }
    while (page->waiting != NULL) {
        struct scraper *scraper = page->waiting;
        page->waiting = scraper->next_waiting;
        page_reply(page, scraper->request);
    }
    page_unref(page);
}

static struct page *find_page(const struct daemon *daemon, const struct page_key *key) {
    for (struct page *page = daemon->pages; page != NULL; page = page->next) {
        if (page->key.generation == key->generation && page->key.want == key->want &&
            page->key.missed == key->missed && page->key.choice.format == key->choice.format &&
            page->key.choice.escaping == key->choice.escaping && page->key.gzip == key->gzip) {
            return page;
        }
    }
    return NULL;
}

/* Knobs are shown with the series that plugins push. */
static bool wants_knobs(const struct daemon *daemon, uint64_t want) {
    bool wanted = false;
    for (size_t i = 0; i < engine_n_collectors(daemon->engine); i++) {
        bool is_push = engine_status(daemon->engine, i).collector == &push_collector;
        wanted |= is_push && (want & UINT64_C(1) << i) != 0;
    }
    return wanted;
}

static struct page *page_create(struct daemon *daemon, const struct engine_scrape *scrape,
                                const struct page_key *key) {
    struct page *page = mem_zalloc(1, sizeof(*page));
    page->refs = 1;
    page->key = *key;
    page->daemon = daemon;
    for (size_t i = 0; i < engine_n_collectors(daemon->engine); i++) {
        bool there = (key->want & ~key->missed & UINT64_C(1) << i) != 0;
        struct exposition_part *part = there ? engine_entry(daemon->engine, i)->part : NULL;
        page->parts[page->n_parts++] = part != NULL ? exposition_part_ref(part) : NULL;
    }
    page->parts[page->n_parts++] =
        wants_knobs(daemon, key->want) ? knobs_part(daemon->knobs) : NULL;
    bool self = !settings_bool(daemon->config->settings, "web.disable-exporter-metrics");
    page->parts[page->n_parts++] = self ? self_metrics_part(daemon, scrape) : NULL;
    page->with_process = self;
    page->next = daemon->pages;
    daemon->pages = page;
    page->job = (struct worker_job){.run = page_run, .done = page_done};
    worker_submit(daemon->page_worker, &page->job);
    return page;
}

/* Replies to a request whose scrape has finished. */
static void reply(struct scraper *scraper) {
    const struct engine_scrape *scrape = &scraper->scrape;
    struct http_request *request = scraper->request;
    struct daemon *daemon = daemon_of(request);
    struct page_key key = {
        .generation = engine_generation(daemon->engine),
        .want = scrape->want,
        .missed = scrape->missed,
        .choice = exposition_negotiate(http_header(request, MHD_HTTP_HEADER_ACCEPT)),
        .gzip = exposition_accepts_gzip(http_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING)),
    };
    struct page *page = find_page(daemon, &key);
    if (page == NULL) {
        page = page_create(daemon, scrape, &key);
    }
    page->refs++;
    scraper->page = page;
    if (page->built) {
        page_reply(page, request);
    } else {
        scraper->next_waiting = page->waiting;
        page->waiting = scraper;
    }
}

/* Ends a request's wait for its page. */
static void leave_page(struct scraper *scraper) {
    struct page *page = scraper->page;
    *LIST_LINK(&page->waiting, scraper, next_waiting) = scraper->next_waiting;
    if (page->waiting == NULL) {
        page->key.generation = 0; /* no other request finds it */
        atomic_store(&page->unwanted, true);
    }
    page_unref(TAKE(scraper->page));
}

/* ---- parameters of a scrape ---- */

static int find_collector(const struct engine *engine, const char *name, uint64_t *ret_bit,
                          struct error *err) {
    for (size_t i = 0; i < engine_n_collectors(engine); i++) {
        struct engine_status status = engine_status(engine, i);
        if (strcmp(status.collector->name, name) != 0) {
            continue;
        }
        if (!status.enabled) {
            return error_set(err, -EINVAL, "collector \"%s\" is disabled", name);
        }
        *ret_bit = UINT64_C(1) << i;
        return 0;
    }
    return error_set(err, -EINVAL, "unknown collector \"%s\"", name);
}

static int parse_filters(const struct http_request *request, uint64_t *ret_want,
                         struct error *err) {
    const struct engine *engine = daemon_of(request)->engine;
    uint64_t collect = 0;
    uint64_t exclude = 0;
    for (size_t i = 0; i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        uint64_t *set = strcmp(parameter->name, "collect[]") == 0   ? &collect
                        : strcmp(parameter->name, "exclude[]") == 0 ? &exclude
                                                                    : NULL;
        uint64_t bit = 0;
        if (set == NULL) {
            continue;
        }
        int r = find_collector(engine, parameter->value, &bit, err);
        if (r < 0) {
            return r;
        }
        *set |= bit;
    }
    if (collect != 0 && exclude != 0) {
        return error_set(err, -EINVAL, "collect[] and exclude[] cannot be used together");
    }
    *ret_want = collect != 0 ? collect : engine_enabled(engine) & ~exclude;
    return 0;
}

/* Prometheus sends how long it waits; the reply must leave a little earlier. */
static int parse_deadline(const struct http_request *request, int64_t *ret_deadline_ns,
                          struct error *err) {
    const struct settings *settings = daemon_of(request)->config->settings;
    double seconds = (double)settings_duration_ms(settings, "scrape.timeout") / 1e3;
    const char *header = http_header(request, "X-Prometheus-Scrape-Timeout-Seconds");
    if (header != NULL) {
        double given;
        if (number_parse(header, strlen(header), &given) < 0 || !(given > 0)) {
            return error_set(err, -EINVAL,
                             "X-Prometheus-Scrape-Timeout-Seconds: expected seconds, got \"%s\"",
                             header);
        }
        double offset = (double)settings_duration_ms(settings, "scrape.timeout-offset") / 1e3;
        seconds = fmax(given - offset, given / 2);
    }
    seconds = fmin(seconds, SCRAPE_MAX_SECONDS);
    *ret_deadline_ns = clock_monotonic_ns() + (int64_t)(seconds * 1e9);
    return 0;
}

/* ---- the handler ---- */

static void scrape_finished(struct engine_scrape *scrape) {
    reply(CONTAINER_OF(scrape, struct scraper, scrape));
}

static void cancel_scrape(struct http_request *request) {
    struct scraper *scraper = request->handler_state;
    if (scraper->page != NULL) {
        leave_page(scraper);
    } else {
        engine_scrape_cancel(daemon_of(request)->engine, &scraper->scrape);
    }
}

static void free_scraper(void *state) {
    struct scraper *scraper = state;
    page_unref(scraper->page);
    free(scraper);
}

/* Whoever starts waap by hand sees that Prometheus reaches it. A browser that shows the live page
 * sends a Referer and does not count. */
static void log_first(const struct http_request *request) {
    struct daemon *daemon = daemon_of(request);
    const struct http_client *client = request->client;
    const char *agent = http_header(request, MHD_HTTP_HEADER_USER_AGENT);
    char text[INET6_ADDRSTRLEN];
    bool known = http_header(request, MHD_HTTP_HEADER_REFERER) != NULL ||
                 daemon->n_scrapers == ARRAY_LEN(daemon->scrapers);
    for (size_t i = 0; i < daemon->n_scrapers; i++) {
        known = known || network_is_same_peer(&daemon->scrapers[i], &client->address);
    }
    if (!known) {
        daemon->scrapers[daemon->n_scrapers++] = client->address;
        network_format(&client->address, text);
        log_info("metrics: first scrape by %s (%.60s)",
                 client->is_unix ? "a Unix socket's client" : text,
                 agent != NULL ? agent : "no User-Agent");
    }
}

void http_metrics_handle(struct http_request *request) {
    struct engine_scrape scrape = {.finished = scrape_finished};
    struct error error;
    if (parse_filters(request, &scrape.want, &error) < 0 ||
        parse_deadline(request, &scrape.deadline_ns, &error) < 0) {
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "%s", error.text);
        return;
    }
    log_first(request);
    struct scraper *scraper = mem_alloc(sizeof(*scraper));
    *scraper = (struct scraper){.request = request, .scrape = scrape};
    request->handler_state = scraper;
    request->free_state = free_scraper;
    if (http_hold_scrape(request, cancel_scrape) &&
        engine_scrape(daemon_of(request)->engine, &scraper->scrape)) {
        reply(scraper);
    }
}

#include "exporter/daemon/page.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/push_collector.h"
#include "exporter/core/container_of.h"
#include "exporter/core/gzip.h"
#include "exporter/core/log.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/self_metrics.h"
#include "exporter/http/process_metrics.h"
#include "exporter/metrics/exposition.h"

/* What makes two pages the same. */
struct page_key {
    uint64_t generation; /* of the engine's entries */
    uint64_t want;
    uint64_t missed;
    struct exposition_choice choice;
    bool gzip;
};

/* How a page is sent. */
enum page_form {
    PAGE_PACKED,
    PAGE_IN_PIECES, /* as they lie in the parts */
    PAGE_COPIED,    /* block by block */
    PAGE_FORMS,
};

struct page {
    unsigned refs; /* of the job that builds it and of each request that it answers */
    struct page_key key;
    struct http_sending sending;
    struct daemon *daemon;
    struct worker_job job;
    bool with_process;                          /* add what this process uses */
    struct page_request *waiting;               /* until it is built */
    struct MHD_Response *responses[PAGE_FORMS]; /* as they were asked for */
    bool built;
    atomic_bool unwanted; /* nobody waits for it any more */
    struct page *next;    /* of daemon.pages */

    struct exposition_page text; /* refers to the parts */
    size_t *piece_ends;          /* of the text's pieces: how far each reaches; where needed */
    struct buf compressed;       /* the same, where gzip was asked for */
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
    struct page **link = &page->daemon->pages;
    while (*link != page) {
        link = &(*link)->next;
    }
    *link = page->next;
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

/* ---- on the worker ---- */

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

/* ---- on the loop ---- */

static int note_ends(struct page *page) {
    const struct exposition_page *text = &page->text;
    free(page->piece_ends); /* where a response could not be made after all */
    page->piece_ends = calloc(text->n_pieces + 1, sizeof(*page->piece_ends));
    if (page->piece_ends == NULL) {
        return -ENOMEM;
    }
    size_t end = 0;
    for (size_t i = 0; i < text->n_pieces; i++) {
        end += text->pieces[i].iov_len;
        page->piece_ends[i] = end;
    }
    return 0;
}

/* The piece that has the byte at `at`. */
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

/* Copies what follows on `at`. */
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
    return note_ends(page) == 0
               ? MHD_create_response_from_callback(page->text.len, block, read_text, page, NULL)
               : NULL;
}

/* The page outlives its responses. */
static struct MHD_Response *make_response(struct page *page, enum page_form form) {
    switch (form) {
    case PAGE_PACKED:
        return MHD_create_response_from_buffer(page->compressed.len, page->compressed.data,
                                               MHD_RESPMEM_PERSISTENT);
    case PAGE_IN_PIECES: /* an iovec is what libmicrohttpd calls it */
        return MHD_create_response_from_iovec((const struct MHD_IoVec *)page->text.pieces,
                                              (unsigned)page->text.n_pieces, NULL, NULL);
    default:
        return respond_by_copies(page);
    }
}

/* libmicrohttpd copies the list of pieces to where the request's head is, and aborts where it does
 * not fit. */
static enum page_form choose_form(const struct page *page, const struct http_request *request) {
    if (page->key.gzip) {
        return PAGE_PACKED;
    }
    size_t list_size = page->text.n_pieces * sizeof(struct MHD_IoVec);
    return http_has_room(request, list_size) ? PAGE_IN_PIECES : PAGE_COPIED;
}

/* The response that suits the request; NULL when memory is out. */
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

static void page_answer(struct page *page, struct http_request *request) {
    struct MHD_Response *response = response_for(page, request);
    if (response != NULL) {
        http_sending_begin(request, &page->sending);
        http_reply_shared(request, MHD_HTTP_OK, response);
    } else {
        http_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "page: out of memory");
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
        struct page_request *reader = page->waiting;
        page->waiting = reader->next_waiting;
        page_answer(page, reader->request);
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

/* Knobs are shown with what plugins push. */
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
    struct page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return NULL;
    }
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

void page_request_answer(struct page_request *reader) {
    const struct engine_scrape *scrape = &reader->scrape;
    struct http_request *request = reader->request;
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
    if (page == NULL) {
        http_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
        return;
    }
    page->refs++;
    reader->page = page;
    if (page->built) {
        page_answer(page, request);
    } else {
        reader->next_waiting = page->waiting;
        page->waiting = reader;
    }
}

void page_request_cancel(struct page_request *reader) {
    struct page *page = reader->page;
    struct page_request **link = &page->waiting;
    while (*link != reader) {
        link = &(*link)->next_waiting;
    }
    *link = reader->next_waiting;
    if (page->waiting == NULL) {
        page->key.generation = 0; /* no other request finds it */
        atomic_store(&page->unwanted, true);
    }
    page_request_finish(reader);
}

void page_request_finish(struct page_request *reader) {
    page_unref(TAKE(reader->page));
}

#pragma once

#include "exporter/engine/engine.h"
#include "exporter/http/request.h"

struct page;

/* A request for metrics: first it waits for the collectors, then for its page. */
struct page_request {
    struct http_request *request;
    struct engine_scrape scrape;
    struct page *page;                 /* that it waits for or that answers it; NULL: none yet */
    struct page_request *next_waiting; /* for the same page */
};

/* Answers a request whose scrape is over. The page is built and compressed on a worker; requests
 * that want the same page of the same answers share it. */
void page_request_answer(struct page_request *reader);

/* Ends a request's wait for its page. */
void page_request_cancel(struct page_request *reader);

/* Drops the page; does not free `reader`. */
void page_request_finish(struct page_request *reader);

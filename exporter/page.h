#pragma once

#include "exporter/http_request.h"

/* Answers a request for metrics whose scrape is over. The page is built and compressed on a worker;
 * requests that want the same page of the same answers share it. */
void page_request(struct http_request *request);

/* Ends a request's wait for its page. */
void page_cancel(struct http_request *request);

/* Drops a request's reference; accepts NULL. */
void page_unref(struct page *page);

#pragma once

#include "exporter/http_request.h"

/* Answers a request for metrics whose scrape is over. The page is built and compressed on a worker;
 * requests of one round that want the same page share it. */
void page_request(struct http_request *request);

/* Drops a request's reference; accepts NULL. */
void page_unref(struct page *page);

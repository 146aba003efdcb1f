#include "placement/client/promql.h"

#include <errno.h>
#include <stdbool.h>

/* Proxies answer with pages of their own: what is no error of Prometheus is shown as it stands. */
static int refuse(struct web_client *client, const struct web_request *request, unsigned status,
                  struct promql_answer *answer, struct error *err) {
    struct buf words CLEANUP_BUF = {0};
    struct error reason;
    enum { MAX_WORDS = 200 };
    buf_add(&words, buf_str(&answer->text),
            answer->text.len < MAX_WORDS ? answer->text.len : MAX_WORDS);
    int r = promql_answer_parse(answer, PROMQL_MAX_SERIES, &reason);
    return web_client_fail(client, request, status, r == -EREMOTEIO ? reason.text : buf_str(&words),
                           err);
}

int promql_query(struct web_client *client, const char *expression, struct promql_answer *answer,
                 struct error *err) {
    enum { HTTP_OK = 200 };
    promql_answer_finish(answer);
    struct buf form CLEANUP_BUF = {0};
    buf_add_str(&form, "query=");
    web_add_escaped(&form, expression);
    if (form.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    const struct web_request request = {
        .method = "POST",
        .path = "/api/v1/query",
        .body = buf_str(&form),
        .content_type = "application/x-www-form-urlencoded",
        .accept = "application/json",
    };
    unsigned status;
    int r = web_client_call(client, &request, &status, &answer->text, err);
    if (r < 0) {
        return r;
    }
    if (status != HTTP_OK) {
        return refuse(client, &request, status, answer, err);
    }
    struct error reason;
    r = promql_answer_parse(answer, PROMQL_MAX_SERIES, &reason);
    if (r < 0) {
        web_client_fail(client, &request, status, reason.text, err);
    }
    return r;
}

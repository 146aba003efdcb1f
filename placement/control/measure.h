#pragma once

#include "exporter/core/error.h"
#include "exporter/metrics/exposition_doc.h"
#include "placement/client/promql_answer.h"
#include "placement/client/web_client.h"
#include "placement/control/config.h"
#include "placement/control/law.h"

/* What a loop measures, or why it does not. */
struct control_measure {
    double value;
    bool has_value;
    enum control_reason trouble; /* without a value */
    struct error words;          /* of the trouble */
    struct error remark;         /* a warning of Prometheus, or "" */
};

/* Asks Prometheus or the exporter, as the loop is configured. */
void control_measure_take(const struct control_config *config,
                          const struct control_loop_config *loop, struct web_client *prometheus,
                          struct web_client *exporter, struct control_measure *ret_measure);

/* Reads the exporter's page; `page` points into `text`. */
int control_measure_page(const struct control_config *config, struct web_client *exporter,
                         struct buf *text, struct exposition_doc *page, struct error *err);

/* The one value of an answer, or why there is none. */
void control_measure_judge(const struct promql_answer *answer, struct control_measure *ret_measure);

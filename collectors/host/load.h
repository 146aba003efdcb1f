#pragma once

enum { HOST_LOAD_FIELDS = 3 };

/* "0.08 0.04 0.01 2/95 6904": the loads of one, five and fifteen minutes; 0 or -EINVAL. */
int host_load_parse(const char *text, double ret_loads[static HOST_LOAD_FIELDS]);

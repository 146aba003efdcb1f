#pragma once

/* "45500\n", thousandths of a degree, below zero too; 0 or -EINVAL. */
int host_thermal_parse(const char *text, double *ret_celsius);

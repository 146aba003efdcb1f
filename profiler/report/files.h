#pragma once

/* What the page of a report has beside its content, from profiler/report/ by embed.py. */

extern const char report_css[];
extern const char report_js[];

/* Content-Security-Policy: nothing but this style sheet and this script, known by their hashes. */
extern const char report_policy[];

#pragma once

/* Prepares GnuTLS, unless that has been done: before anything else is asked of it. Whether it works
 * shows in the calls that follow. */
void tls_start(void);

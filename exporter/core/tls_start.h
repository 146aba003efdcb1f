#pragma once

/* Prepares GnuTLS before its first use. The calls that follow show whether it works. */
void tls_start(void);

#include "exporter/core/tls_start.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <unity.h>

/* GnuTLS can make certificates only once it has been prepared. */
static bool is_prepared(void) {
    gnutls_x509_crt_t certificate = NULL;
    bool made = gnutls_x509_crt_init(&certificate) == GNUTLS_E_SUCCESS;
    if (made) {
        gnutls_x509_crt_deinit(certificate);
    }
    return made;
}

static void test_gnutls_waits_for_us(void) {
    TEST_ASSERT_FALSE(is_prepared());
    TEST_ASSERT_EQUAL_INT(GNUTLS_E_SUCCESS, gnutls_global_init()); /* as libmicrohttpd calls it */
    TEST_ASSERT_FALSE(is_prepared());
    tls_start();
    TEST_ASSERT_TRUE(is_prepared());
    tls_start();
    TEST_ASSERT_TRUE(is_prepared());
}

/* Covers exporter/http/url.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/http/url.h"
#include "exporter/net/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A request target as libmicrohttpd hands it over: any bytes up to the first NUL. The same text is
 * also read as an address to listen on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *target CLEANUP_FREE = strndup((const char *)data, len);
    if (target == NULL) {
        return 0;
    }
    struct http_url url;
    struct error err = {0};
    if (http_url_parse(target, &url, &err) == 0) {
        assert(url.path[0] == '/' && strlen(url.path) <= strlen(target) + 1);
        assert(url.n_parameters <= HTTP_URL_MAX_PARAMETERS);
        size_t total = 0;
        for (size_t i = 0; i < url.n_parameters; i++) {
            total += strlen(url.parameters[i].name) + strlen(url.parameters[i].value);
        }
        assert(total <= strlen(target));
        http_url_finish(&url);
    } else {
        assert(err.text[0] != '\0');
    }
    struct http_address address;
    if (http_address_parse(target, &address, &err) == 0) {
        assert(address.is_unix ? address.path[0] == '/' : address.port[0] != '\0');
    }
    return 0;
}

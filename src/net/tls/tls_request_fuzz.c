/* tls_request_fuzz.c - fuzzes certificate requests: each is rejected with a text, or gives a certificate with our name.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls/tls.h"

#define NOW_NS INT64_C(1800000000000000000)

static struct tls_identity authority(void)
{
    struct tls_identity ca = {0};
    char dir[] = "/tmp/berth-fuzz.XXXXXX", path[64];

    if (!mkdtemp(dir) || tls_ca_ensure(dir, NOW_NS, &ca, NULL) != 0)
        abort();
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/ca-%s.pem", dir, i ? "key" : "cert");
        (void)unlink(path);
    }
    (void)rmdir(dir);
    return ca;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tls_identity ca;
    if (!ca.cert_pem)
        ca = authority();
    const struct tls_client_cert_spec grant = {"node:n1", NULL, NOW_NS, NOW_NS + 1000000000};
    CLEANUP(mem) char *text = mem_zalloc(size + 1), *cert = NULL;
    struct berth_err err = {0};
    struct tls_cert_info info;

    memcpy(text, data, size);
    int rc = tls_request_sign(&ca, text, &grant, &cert, &err);
    if (rc < 0) {
        assert(err.text[0] && !cert);
        return 0;
    }
    assert(tls_cert_info(cert, &info, NULL) == 0 && strcmp(info.common_name, "node:n1") == 0);
    (void)tls_cert_info(text, &info, NULL);
    return 0;
}

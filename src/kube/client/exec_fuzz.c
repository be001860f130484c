/* exec_fuzz.c - arbitrary output of exec plugins. */
#include "kube/client/exec.h"

#include <assert.h>
#include <string.h>

#include "kube/client/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_credential c = {0};
    struct berth_err err = {0};
    int rc = kube_credential_parse((const char *)data, size, "client.authentication.k8s.io/v1", &c, &err);
    assert((rc < 0) == (err.text[0] != '\0'));
    if (rc == 0) {
        assert(c.token || c.cert_pem);
        assert(!c.cert_pem == !c.key_pem);
        assert(!c.token || kube_token_plain(c.token));
    } else {
        assert(!c.token && !c.cert_pem && !c.key_pem);
    }
    kube_credential_done(&c);
    return 0;
}

/* http_peer.c - client certificates: the library only asks for them, we judge. */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "net/http_inner.h"

enum { NAME_MAX_BYTES = 256 };

/* Signed by our authority, in its time, and made for clients (or for no purpose in particular). */
static bool certificate_good(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = ~0U;
    return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == GNUTLS_E_SUCCESS && status == 0;
}

/* What GnuTLS cannot print (a NUL inside, say) comes as '#' and digits, and some characters with a backslash before:
 * such names could pass for others, so they are none. */
static bool name_plain(const char *name, size_t len)
{
    if (len == 0 || strlen(name) != len || name[0] == '#' || !str_utf8_valid(name, len))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '\\')
            return false;
    return true;
}

char *peer_certificate_name(void *session)
{
    unsigned len = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &len);
    gnutls_x509_crt_t cert;
    char name[NAME_MAX_BYTES];
    size_t size = sizeof name;

    if (!chain || len == 0 || !certificate_good(session) || gnutls_x509_crt_init(&cert) < 0)
        return NULL;
    bool found = gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
                 gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size) == 0 &&
                 name_plain(name, size);
    gnutls_x509_crt_deinit(cert);
    return found ? mem_strdup(name) : NULL;
}

const char *http_peer_name(const struct http_exchange *x)
{
    struct conn *c = x->conn;
    if (!c->name_checked && c->server->tls) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        c->name = info ? peer_certificate_name(info->tls_session) : NULL;
        c->name_checked = true;
    }
    return c->name;
}

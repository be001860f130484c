/* http_peer.c - client certificates. libmicrohttpd only requests them; the server verifies them here. */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

#include "net/http/http_inner.h"

enum { NAME_MAX_BYTES = 256, SERIAL_MAX_BYTES = 64 };

/* Returns whether the certificate is signed by the configured CA, is already valid, and is meant for clients or for any
 * purpose. *ret_over: the certificate has expired. */
static bool certificate_is_valid(gnutls_session_t session, bool *ret_over)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = ~0U;
    if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) != GNUTLS_E_SUCCESS)
        return false;
    *ret_over = status & GNUTLS_CERT_EXPIRED;
    return *ret_over ? status == (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_INVALID) : status == 0;
}

/* Returns whether the name is plain text. GnuTLS writes names that it cannot print (for example with a NUL) as '#' and
 * digits, and puts a backslash before some characters. Such names could be mistaken for others, so they are
 * rejected. */
static bool name_is_plain(const char *name, size_t len)
{
    if (len == 0 || strlen(name) != len || name[0] == '#' || !str_utf8_valid(name, len))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '\\')
            return false;
    return true;
}

void peer_certificate(void *session, struct http_peer *ret)
{
    unsigned len = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &len);
    gnutls_x509_crt_t cert;
    char name[NAME_MAX_BYTES];
    unsigned char serial[SERIAL_MAX_BYTES];
    size_t size = sizeof name, serial_len = sizeof serial;

    if (!chain || len == 0 || !certificate_is_valid(session, &ret->over) || gnutls_x509_crt_init(&cert) < 0)
        return;
    if (gnutls_x509_crt_import(cert, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
        gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size) == 0 &&
        name_is_plain(name, size) && gnutls_x509_crt_get_serial(cert, serial, &serial_len) == 0) {
        time_t until_s = gnutls_x509_crt_get_expiration_time(cert);
        ret->name = mem_strdup(name);
        ret->until_ns = until_s > INT64_MAX / 1000000000 ? INT64_MAX : (int64_t)until_s * 1000000000;
        for (size_t i = 0; i < serial_len && 2 * i + 2 < sizeof ret->serial; i++)
            (void)snprintf(ret->serial + 2 * i, 3, "%02x", serial[i]);
    }
    gnutls_x509_crt_deinit(cert);
}

const struct http_peer *http_peer(const struct http_request *x)
{
    struct conn *c = x->conn;
    if (!c->peer_checked && c->server->tls) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (info)
            peer_certificate(info->tls_session, &c->shown);
        c->peer_checked = true;
        c->trusted = c->shown.name && !c->shown.over;
        c->peer->trusted += c->trusted;
    }
    return c->shown.name ? &c->shown : NULL;
}

const char *http_peer_name(const struct http_request *x)
{
    const struct http_peer *peer = http_peer(x);
    return peer && !peer->over ? peer->name : NULL;
}

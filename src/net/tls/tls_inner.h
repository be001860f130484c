/* tls_inner.h - internal declarations shared by the files of tls.h: cleanup of GnuTLS objects, PEM files, certificate
 * creation. Only for net/.
 */
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "net/tls/tls.h"

enum {
    TLS_SERIAL_BYTES = 1 + 2 * TLS_SERIAL_PREFIX_BYTES,
    TLS_DAY_S = 86400,
    TLS_LIFE_S = 3653 * TLS_DAY_S, /* ten years */
};

static inline void crt_cleanup(gnutls_x509_crt_t *crt)
{
    if (*crt)
        gnutls_x509_crt_deinit(*crt);
}

static inline void key_cleanup(gnutls_x509_privkey_t *key)
{
    if (*key)
        gnutls_x509_privkey_deinit(*key);
}

static inline void pubkey_cleanup(gnutls_pubkey_t *key)
{
    if (*key)
        gnutls_pubkey_deinit(*key);
}

static inline void crq_cleanup(gnutls_x509_crq_t *crq)
{
    if (*crq)
        gnutls_x509_crq_deinit(*crq);
}

static inline void credentials_cleanup(gnutls_certificate_credentials_t *c)
{
    if (*c)
        gnutls_certificate_free_credentials(*c);
}

static inline void datum_cleanup(gnutls_datum_t *d)
{
    gnutls_free(d->data);
}

static inline void secret_cleanup(gnutls_datum_t *d)
{
    if (d->data)
        explicit_bzero(d->data, d->size);
    gnutls_free(d->data);
}

static inline void close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline gnutls_datum_t tls_datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

/* Certificates begin in the past, so that they are valid for peers whose clock is behind, and after this machine's
 * clock was set back. */
static inline time_t tls_begin_s(int64_t now_ns)
{
    return (time_t)(now_ns / 1000000000) - TLS_LIFE_S;
}

static inline time_t tls_end_s(int64_t now_ns)
{
    return (time_t)(now_ns / 1000000000) + TLS_LIFE_S;
}

/* ---- files (tls.c) ---- */

int tls_file_read(const char *path, bool is_secret, char **ret, struct berth_err *err);
/* Writes the file atomically. The mode is set before the content is written. */
int tls_file_write(const char *dir, const char *name, mode_t mode, const gnutls_datum_t *text, struct berth_err *err);
/* Checks that the key belongs to the certificate, and computes the pin. The paths are only used in error texts. */
int tls_identity_check(struct tls_identity *id, const char *cert_path, const char *key_path, struct berth_err *err);
/* Computes the pin of the first certificate in the text. Returns a GnuTLS code. */
int tls_pin_of(const char *cert_pem, char ret[static TLS_PIN_MAX]);
/* Reads DIR/NAME-cert.pem and DIR/NAME-key.pem, or creates both with `make`. */
typedef int tls_pair_make(const void *ctx, gnutls_datum_t *cert_pem, gnutls_datum_t *key_pem, struct berth_err *err);
int tls_pair_ensure(const char *dir, const char *name, tls_pair_make *make, const void *ctx, struct tls_identity *ret,
                    struct berth_err *err);

/* ---- creating certificates (tls.c); functions without `err` return a GnuTLS code -------------------------------- */

struct tls_cert_fields {
    const char *common_name, *purpose; /* purpose: an OID; NULL: any purpose */
    const unsigned char *stamp;        /* TLS_SERIAL_PREFIX_BYTES of the serial number; NULL: random */
    time_t not_before_s, not_after_s;
    bool is_authority;
};
int tls_certificate_fill(gnutls_x509_crt_t crt, const struct tls_cert_fields *fill);
int tls_names_add(gnutls_x509_crt_t crt, const char *const *names, struct berth_err *err);
int tls_key_new(gnutls_x509_privkey_t *ret); /* ECDSA P-256 */
int tls_key_export(gnutls_x509_privkey_t key, gnutls_datum_t *ret_pem);

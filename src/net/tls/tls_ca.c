/* tls_ca.c - a certificate authority: created once, signs server certificates and the requests of clients. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_inner.h"

enum { COMMON_NAME_MAX = 128 };

static int ca_make(const void *ctx, gnutls_datum_t *cert_pem, gnutls_datum_t *key_pem, struct berth_err *err)
{
    const int64_t now_ns = *(const int64_t *)ctx;
    const struct tls_cert_fields fill = {
        .common_name = "Berth cluster authority",
        .not_before_s = tls_begin_s(now_ns),
        .not_after_s = tls_end_s(now_ns),
        .is_authority = true,
    };
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    CLEANUP(key) gnutls_x509_privkey_t key = NULL;
    unsigned char id[64];
    size_t id_len = sizeof id;
    int rc;

    if ((rc = tls_key_new(&key)) < 0 || (rc = gnutls_x509_crt_init(&crt)) < 0 ||
        (rc = gnutls_x509_crt_set_key(crt, key)) < 0 || (rc = tls_certificate_fill(crt, &fill)) < 0 ||
        (rc = gnutls_x509_crt_get_key_id(crt, 0, id, &id_len)) < 0 ||
        (rc = gnutls_x509_crt_set_subject_key_id(crt, id, id_len)) < 0 ||
        (rc = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0)) < 0 ||
        (rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, cert_pem)) < 0 ||
        (rc = tls_key_export(key, key_pem)) < 0)
        return err_set(err, EIO, "cannot make an authority: %s", gnutls_strerror(rc));
    return 0;
}

static int certificate_parse(const char *pem, gnutls_x509_crt_t *ret)
{
    const gnutls_datum_t text = tls_datum(pem);
    int rc = gnutls_x509_crt_init(ret);
    return rc < 0 ? rc : gnutls_x509_crt_import(*ret, &text, GNUTLS_X509_FMT_PEM);
}

static int key_parse(const char *pem, gnutls_x509_privkey_t *ret)
{
    const gnutls_datum_t text = tls_datum(pem);
    int rc = gnutls_x509_privkey_init(ret);
    return rc < 0 ? rc : gnutls_x509_privkey_import2(*ret, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
}

int tls_ca_ensure(const char *dir, int64_t now_ns, struct tls_identity *ret, struct berth_err *err)
{
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    struct tls_identity id = {0};
    unsigned critical, usage = 0;
    int rc = tls_pair_ensure(dir, "ca", ca_make, &now_ns, &id, err);

    if (rc < 0)
        return rc;
    bool signs = certificate_parse(id.cert_pem, &crt) == 0 && gnutls_x509_crt_get_ca_status(crt, &critical) > 0 &&
                 (gnutls_x509_crt_get_key_usage(crt, &usage, &critical) < 0 || usage & GNUTLS_KEY_KEY_CERT_SIGN);
    if (!signs) {
        tls_identity_done(&id);
        return err_set(err, EINVAL, "%s/ca-cert.pem is no certificate of an authority: it may not sign others", dir);
    }
    *ret = id;
    return 0;
}

/* ---- signing ---------------------------------------------------------------------------------------------------- */

static char *text_of(const gnutls_datum_t *pem)
{
    struct str text = {0};
    str_add_bytes(&text, pem->data, pem->size);
    return str_take(&text);
}

/* Signs a certificate whose fields and key are set, and exports the certificate. */
static int sign(gnutls_x509_crt_t crt, const struct tls_identity *ca, char **ret_pem)
{
    CLEANUP(crt) gnutls_x509_crt_t ca_crt = NULL;
    CLEANUP(key) gnutls_x509_privkey_t ca_key = NULL;
    CLEANUP(datum) gnutls_datum_t pem = {0};
    unsigned char id[64];
    size_t id_len = sizeof id;
    int rc;

    if ((rc = certificate_parse(ca->cert_pem, &ca_crt)) < 0 || (rc = key_parse(ca->key_pem, &ca_key)) < 0)
        return rc;
    if (gnutls_x509_crt_get_subject_key_id(ca_crt, id, &id_len, NULL) == 0 &&
        (rc = gnutls_x509_crt_set_authority_key_id(crt, id, id_len)) < 0)
        return rc;
    if ((rc = gnutls_x509_crt_sign2(crt, ca_crt, ca_key, GNUTLS_DIG_SHA256, 0)) < 0 ||
        (rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem)) < 0)
        return rc;
    *ret_pem = text_of(&pem);
    return 0;
}

/* Reads the key of DIR/NAME-key.pem, or creates it. */
static int server_key(const char *dir, const char *name, char **ret_pem, struct berth_err *err)
{
    CLEANUP(str) struct str file = {0}, path = {0};
    CLEANUP(key) gnutls_x509_privkey_t key = NULL;
    CLEANUP(secret) gnutls_datum_t pem = {0};
    int rc = 0;

    str_addf(&file, "%s-key.pem", name);
    str_addf(&path, "%s/%s", dir, file.at);
    if (access(path.at, F_OK) != 0) {
        if ((rc = tls_key_new(&key)) < 0 || (rc = tls_key_export(key, &pem)) < 0)
            rc = err_set(err, EIO, "cannot make a key: %s", gnutls_strerror(rc));
        else
            rc = tls_file_write(dir, file.at, S_IRUSR | S_IWUSR, &pem, err);
    }
    return rc < 0 ? rc : tls_file_read(path.at, true, ret_pem, err);
}

int tls_server_cert(const struct tls_identity *ca, const char *dir, const char *name, const char *const *names,
                    int64_t now_ns, struct tls_identity *ret, struct berth_err *err)
{
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    CLEANUP(key) gnutls_x509_privkey_t key = NULL;
    struct tls_identity id = {0};
    struct tls_cert_info authority = {0};
    int rc = tls_cert_info(ca->cert_pem, &authority, err);

    if (rc == 0)
        rc = server_key(dir, name, &id.key_pem, err);
    if (rc != 0)
        return rc;
    const struct tls_cert_fields fill = {
        .common_name = "berthd",
        .not_before_s = tls_begin_s(now_ns),
        .not_after_s = (time_t)(authority.not_after_ns / 1000000000),
        .purpose = GNUTLS_KP_TLS_WWW_SERVER,
    };
    int code = key_parse(id.key_pem, &key);
    if (code < 0)
        rc = err_set(err, EINVAL, "%s/%s-key.pem is no key in PEM without a passphrase: %s", dir, name,
                     gnutls_strerror(code));
    else if ((code = gnutls_x509_crt_init(&crt)) < 0 || (code = gnutls_x509_crt_set_key(crt, key)) < 0 ||
             (code = tls_certificate_fill(crt, &fill)) < 0)
        rc = err_set(err, EIO, "cannot make a certificate: %s", gnutls_strerror(code));
    else
        rc = tls_names_add(crt, names, err);
    if (rc == 0 && ((code = sign(crt, ca, &id.cert_pem)) < 0 || (code = tls_pin_of(id.cert_pem, id.pin)) < 0))
        rc = err_set(err, EIO, "cannot sign a certificate: %s", gnutls_strerror(code));
    if (rc < 0) {
        tls_identity_done(&id);
        return rc;
    }
    *ret = id;
    return 0;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

int tls_request_make(char **ret_key_pem, char **ret_request_pem, struct berth_err *err)
{
    CLEANUP(key) gnutls_x509_privkey_t key = NULL;
    CLEANUP(crq) gnutls_x509_crq_t crq = NULL;
    CLEANUP(secret) gnutls_datum_t key_pem = {0};
    CLEANUP(datum) gnutls_datum_t crq_pem = {0};
    static const char name[] = "berth-agent"; /* not used, but some programs require a name */
    int rc;

    if ((rc = tls_key_new(&key)) < 0 || (rc = gnutls_x509_crq_init(&crq)) < 0 ||
        (rc = gnutls_x509_crq_set_version(crq, 1)) < 0 ||
        (rc = gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_COMMON_NAME, 0, name, sizeof name - 1)) < 0 ||
        (rc = gnutls_x509_crq_set_key(crq, key)) < 0 ||
        (rc = gnutls_x509_crq_sign2(crq, key, GNUTLS_DIG_SHA256, 0)) < 0 ||
        (rc = gnutls_x509_crq_export2(crq, GNUTLS_X509_FMT_PEM, &crq_pem)) < 0 ||
        (rc = tls_key_export(key, &key_pem)) < 0)
        return err_set(err, EIO, "cannot make a key and a request to sign it: %s", gnutls_strerror(rc));
    *ret_key_pem = text_of(&key_pem);
    *ret_request_pem = text_of(&crq_pem);
    return 0;
}

/* Parses a request. Checks that its sender has the private key, and that the key is ECDSA P-256. */
static int request_parse(const char *pem, gnutls_x509_crq_t *ret, struct berth_err *err)
{
    const gnutls_datum_t text = tls_datum(pem);
    CLEANUP(crq) gnutls_x509_crq_t crq = NULL;
    gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
    CLEANUP(datum) gnutls_datum_t x = {0}, y = {0};
    CLEANUP(pubkey) gnutls_pubkey_t key = NULL;

    if (text.size > TLS_REQUEST_MAX)
        return err_set(err, EINVAL, "request: longer than %d bytes", TLS_REQUEST_MAX);
    if (gnutls_x509_crq_init(&crq) < 0 || gnutls_x509_crq_import(crq, &text, GNUTLS_X509_FMT_PEM) < 0)
        return err_set(err, EINVAL, "request: not a certificate request in PEM");
    if (gnutls_pubkey_init(&key) < 0 || gnutls_pubkey_import_x509_crq(key, crq, 0) < 0 ||
        gnutls_pubkey_get_pk_algorithm(key, NULL) != GNUTLS_PK_ECDSA ||
        gnutls_pubkey_export_ecc_raw2(key, &curve, &x, &y, 0) < 0 || curve != GNUTLS_ECC_CURVE_SECP256R1)
        return err_set(err, EINVAL, "request: its key is not ECDSA P-256");
    if (gnutls_x509_crq_verify(crq, 0) < 0)
        return err_set(err, EINVAL, "request: not signed by its own key");
    *ret = take_ptr(&crq);
    return 0;
}

static bool name_is_valid(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p >= 0x7f)
            return false;
    return name[0] && strlen(name) <= COMMON_NAME_MAX;
}

int tls_request_sign(const struct tls_identity *ca, const char *request_pem, const struct tls_client_cert_spec *grant,
                     char **ret_cert_pem, struct berth_err *err)
{
    CLEANUP(crq) gnutls_x509_crq_t crq = NULL;
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    CLEANUP(pubkey) gnutls_pubkey_t key = NULL;
    const struct tls_cert_fields fill = {
        .common_name = grant->common_name,
        .stamp = grant->stamp,
        .not_before_s = (time_t)(grant->not_before_ns / 1000000000),
        .not_after_s = (time_t)(grant->not_after_ns / 1000000000),
        .purpose = GNUTLS_KP_TLS_WWW_CLIENT,
    };
    int rc = request_parse(request_pem, &crq, err);

    if (rc < 0)
        return rc;
    if (!name_is_valid(grant->common_name) || fill.not_after_s <= fill.not_before_s)
        return err_set(err, EINVAL, "cannot sign a certificate for '%s': its name or its time is no good",
                       grant->common_name);
    if ((rc = gnutls_pubkey_init(&key)) < 0 || (rc = gnutls_pubkey_import_x509_crq(key, crq, 0)) < 0 ||
        (rc = gnutls_x509_crt_init(&crt)) < 0 || (rc = gnutls_x509_crt_set_pubkey(crt, key)) < 0 ||
        (rc = tls_certificate_fill(crt, &fill)) < 0 || (rc = sign(crt, ca, ret_cert_pem)) < 0)
        return err_set(err, EIO, "cannot sign a certificate: %s", gnutls_strerror(rc));
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int64_t moment_ns(time_t s)
{
    return s < 0 ? 0 : s > INT64_MAX / 1000000000 ? INT64_MAX : (int64_t)s * 1000000000;
}

static int serial_text(gnutls_x509_crt_t crt, char ret[static TLS_SERIAL_MAX])
{
    unsigned char serial[64];
    size_t len = sizeof serial;
    int rc = gnutls_x509_crt_get_serial(crt, serial, &len);

    ret[0] = '\0';
    for (size_t i = 0; rc == 0 && i < len && 2 * i + 2 < TLS_SERIAL_MAX; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", serial[i]);
    return rc;
}

int tls_cert_info(const char *cert_pem, struct tls_cert_info *ret, struct berth_err *err)
{
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    struct tls_cert_info info = {0};
    size_t size = sizeof info.common_name;
    int rc;

    if ((rc = certificate_parse(cert_pem, &crt)) < 0 || (rc = serial_text(crt, info.serial)) < 0 ||
        (rc = tls_pin_of(cert_pem, info.pin)) < 0)
        return err_set(err, EINVAL, "not a certificate in PEM: %s", gnutls_strerror(rc));
    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, info.common_name, &size) < 0)
        info.common_name[0] = '\0';
    info.not_before_ns = moment_ns(gnutls_x509_crt_get_activation_time(crt));
    info.not_after_ns = moment_ns(gnutls_x509_crt_get_expiration_time(crt));
    *ret = info;
    return 0;
}

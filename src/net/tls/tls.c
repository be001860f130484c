/* tls.c - creates and reads certificates with GnuTLS. */
#include "net/tls/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_inner.h"

enum {
    PEM_BYTES_MAX = 1 << 20,
    DN_MAX = 256,
    SHA256_BYTES = 32,
};

void tls_identity_done(struct tls_identity *id)
{
    if (id->key_pem)
        explicit_bzero(id->key_pem, strlen(id->key_pem));
    mem_free(id->cert_pem);
    mem_free(id->key_pem);
    *id = (struct tls_identity){0};
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

int tls_file_read(const char *path, bool is_secret, char **ret, struct berth_err *err)
{
    CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > PEM_BYTES_MAX)
        return err_set(err, EINVAL, "%s is not a PEM file", path);
    /* Read permission for the group is allowed, because it may be intended. */
    if (is_secret && (st.st_mode & (S_IRWXO | S_IWGRP | S_IXGRP)))
        return err_set(err, EPERM, "the key file %s must not be accessible to other users; run chmod 600 %s", path,
                       path);
    CLEANUP(mem) char *text = mem_zalloc((size_t)st.st_size + 1);
    ssize_t n = read(fd, text, (size_t)st.st_size);
    if (n < 0)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    text[n] = '\0';
    *ret = take_ptr(&text);
    return 0;
}

int sha256_text(const void *bytes, size_t len, char ret[static SHA256_TEXT_MAX], struct berth_err *err)
{
    unsigned char hash[SHA256_BYTES];
    int rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, len, hash);

    if (rc < 0)
        return err_set(err, EIO, "cannot compute a hash: %s", gnutls_strerror(rc));
    for (size_t i = 0; i < sizeof hash; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", hash[i]);
    return 0;
}

int tls_pin_of(const char *cert_pem, char ret[static TLS_PIN_MAX])
{
    const gnutls_datum_t pem = {(unsigned char *)cert_pem, (unsigned)strlen(cert_pem)};
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    CLEANUP(pubkey) gnutls_pubkey_t key = NULL;
    CLEANUP(datum) gnutls_datum_t der = {0}, base64 = {0};
    unsigned char hash[SHA256_BYTES];
    int rc;

    if ((rc = gnutls_x509_crt_init(&crt)) < 0 || (rc = gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM)) < 0 ||
        (rc = gnutls_pubkey_init(&key)) < 0 || (rc = gnutls_pubkey_import_x509(key, crt, 0)) < 0 ||
        (rc = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, &der)) < 0 ||
        (rc = gnutls_hash_fast(GNUTLS_DIG_SHA256, der.data, der.size, hash)) < 0 ||
        (rc = gnutls_base64_encode2(&(gnutls_datum_t){hash, sizeof hash}, &base64)) < 0)
        return rc;
    (void)snprintf(ret, TLS_PIN_MAX, "sha256//%.*s", (int)base64.size, (const char *)base64.data);
    return 0;
}

/* Checks that the key belongs to the first certificate, and that all texts are valid PEM. Returns a GnuTLS code. */
static int pair_check(const struct tls_identity *id)
{
    const gnutls_datum_t cert = {(unsigned char *)id->cert_pem, (unsigned)strlen(id->cert_pem)};
    const gnutls_datum_t key = {(unsigned char *)id->key_pem, (unsigned)strlen(id->key_pem)};
    CLEANUP(credentials) gnutls_certificate_credentials_t both = NULL;
    int rc = gnutls_certificate_allocate_credentials(&both);
    return rc < 0 ? rc : gnutls_certificate_set_x509_key_mem2(both, &cert, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
}

int tls_identity_check(struct tls_identity *id, const char *cert_path, const char *key_path, struct berth_err *err)
{
    assert(id->cert_pem && id->key_pem);
    int rc = tls_pin_of(id->cert_pem, id->pin);
    if (rc < 0)
        return err_set(err, EINVAL, "%s is no certificate in PEM: %s", cert_path, gnutls_strerror(rc));
    rc = pair_check(id);
    if (rc == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return err_set(err, EINVAL, "the key %s does not belong to the certificate %s", key_path, cert_path);
    if (rc < 0)
        return err_set(err, EINVAL, "%s is no key in PEM without a passphrase: %s", key_path, gnutls_strerror(rc));
    return 0;
}

int tls_identity_read(const char *cert_path, const char *key_path, struct tls_identity *ret, struct berth_err *err)
{
    struct tls_identity id = {0};
    int rc = tls_file_read(cert_path, false, &id.cert_pem, err);
    if (rc == 0)
        rc = tls_file_read(key_path, true, &id.key_pem, err);
    if (rc == 0)
        rc = tls_identity_check(&id, cert_path, key_path, err);
    if (rc < 0) {
        tls_identity_done(&id);
        return rc;
    }
    *ret = id;
    return 0;
}

/* ---- creating --------------------------------------------------------------------------------------------------- */

static int name_add(gnutls_x509_crt_t crt, const char *name)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, name, address) == 1)
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND);
    if (inet_pton(AF_INET6, name, address) == 1)
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address, 16, GNUTLS_FSAN_APPEND);
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name, (unsigned)strlen(name),
                                                GNUTLS_FSAN_APPEND);
}

static bool name_is_valid(const char *name)
{
    size_t len = strlen(name);
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p >= 0x7f)
            return false;
    return len > 0 && len < DN_MAX;
}

/* Adds the names, then the names that every machine has, without duplicates. */
int tls_names_add(gnutls_x509_crt_t crt, const char *const *names, struct berth_err *err)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "::1"};

    for (size_t i = 0; names[i]; i++) {
        bool seen = false;
        for (size_t a = 0; a < sizeof always / sizeof *always; a++)
            seen = seen || strcmp(names[i], always[a]) == 0;
        for (size_t j = 0; j < i; j++)
            seen = seen || strcmp(names[i], names[j]) == 0;
        if (!name_is_valid(names[i]))
            return err_set(err, EINVAL, "cannot make a certificate for '%s': not a host name or an address", names[i]);
        if (!seen && name_add(crt, names[i]) < 0)
            return err_set(err, EINVAL, "cannot make a certificate for '%s'", names[i]);
    }
    for (size_t a = 0; a < sizeof always / sizeof *always; a++)
        if (name_add(crt, always[a]) < 0)
            return err_set(err, EIO, "cannot make a certificate for %s", always[a]);
    return 0;
}

int tls_certificate_fill(gnutls_x509_crt_t crt, const struct tls_cert_fields *f)
{
    unsigned char serial[TLS_SERIAL_BYTES];
    int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

    serial[0] = 1; /* makes the number positive and its length fixed */
    if (f->stamp)
        memcpy(serial + 1, f->stamp, TLS_SERIAL_PREFIX_BYTES);
    if (rc < 0 || (rc = gnutls_x509_crt_set_version(crt, 3)) < 0 ||
        (rc = gnutls_x509_crt_set_serial(crt, serial, sizeof serial)) < 0 ||
        (rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, f->common_name,
                                            (unsigned)strlen(f->common_name))) < 0 ||
        (rc = gnutls_x509_crt_set_activation_time(crt, f->not_before_s)) < 0 ||
        (rc = gnutls_x509_crt_set_expiration_time(crt, f->not_after_s)) < 0 ||
        (rc = gnutls_x509_crt_set_basic_constraints(crt, f->is_authority, f->is_authority ? 0 : -1)) < 0 ||
        (rc = gnutls_x509_crt_set_key_usage(crt, f->is_authority ? GNUTLS_KEY_KEY_CERT_SIGN
                                                                 : GNUTLS_KEY_DIGITAL_SIGNATURE)) < 0)
        return rc;
    return f->purpose ? gnutls_x509_crt_set_key_purpose_oid(crt, f->purpose, 0) : 0;
}

int tls_key_new(gnutls_x509_privkey_t *ret)
{
    int rc = gnutls_x509_privkey_init(ret);
    unsigned curve = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    return rc < 0 ? rc : gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA, curve, 0);
}

int tls_key_export(gnutls_x509_privkey_t key, gnutls_datum_t *ret_pem)
{
    return gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, ret_pem);
}

/* Creates PEM texts of a key and a self-signed certificate, allocated by GnuTLS. */
static int identity_make(const char *const *names, int64_t now_ns, gnutls_datum_t *cert_pem, gnutls_datum_t *key_pem,
                         struct berth_err *err)
{
    CLEANUP(crt) gnutls_x509_crt_t crt = NULL;
    CLEANUP(key) gnutls_x509_privkey_t key = NULL;
    const struct tls_cert_fields fill = {
        .common_name = names[0] && strlen(names[0]) < 64 ? names[0] : "localhost",
        .not_before_s = tls_begin_s(now_ns),
        .not_after_s = tls_end_s(now_ns),
        .purpose = GNUTLS_KP_TLS_WWW_SERVER,
    };
    int rc, named;

    if ((rc = tls_key_new(&key)) < 0 || (rc = gnutls_x509_crt_init(&crt)) < 0 ||
        (rc = gnutls_x509_crt_set_key(crt, key)) < 0 || (rc = tls_certificate_fill(crt, &fill)) < 0)
        return err_set(err, EIO, "cannot make a certificate: %s", gnutls_strerror(rc));
    if ((named = tls_names_add(crt, names, err)) < 0)
        return named;
    if ((rc = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0)) < 0 ||
        (rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, cert_pem)) < 0 ||
        (rc = tls_key_export(key, key_pem)) < 0)
        return err_set(err, EIO, "cannot make a certificate: %s", gnutls_strerror(rc));
    return 0;
}

static bool file_fill(int fd, mode_t mode, const gnutls_datum_t *text)
{
    if (fchmod(fd, mode) < 0)
        return false;
    for (size_t done = 0; done < text->size;) {
        ssize_t n = write(fd, text->data + done, text->size - done);
        if (n < 0)
            return false;
        done += (size_t)n;
    }
    return fsync(fd) == 0;
}

int tls_file_write(const char *dir, const char *name, mode_t mode, const gnutls_datum_t *text, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0}, temp = {0};
    str_addf(&path, "%s/%s", dir, name);
    str_addf(&temp, "%s.XXXXXX", path.at);
    CLEANUP(close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close) int fd = dir_fd < 0 ? -1 : mkostemp(temp.at, O_CLOEXEC);

    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", path.at, strerror(errno));
    if (file_fill(fd, mode, text) && rename(temp.at, path.at) == 0 && fsync(dir_fd) == 0)
        return 0;
    int rc = err_set(err, errno, "cannot write %s: %s", path.at, strerror(errno));
    (void)unlink(temp.at);
    return rc;
}

int tls_pair_ensure(const char *dir, const char *name, tls_pair_make *make, const void *ctx, struct tls_identity *ret,
                    struct berth_err *err)
{
    CLEANUP(str) struct str cert = {0}, key = {0}, cert_path = {0}, key_path = {0};
    CLEANUP(secret) gnutls_datum_t key_pem = {0};
    CLEANUP(datum) gnutls_datum_t cert_pem = {0};

    str_addf(&cert, "%s-cert.pem", name);
    str_addf(&key, "%s-key.pem", name);
    str_addf(&cert_path, "%s/%s", dir, cert.at);
    str_addf(&key_path, "%s/%s", dir, key.at);
    bool has_cert = access(cert_path.at, F_OK) == 0, has_key = access(key_path.at, F_OK) == 0;
    if (has_cert && !has_key)
        return err_set(err, ENOENT,
                       "%s is there without %s; bring the key back, or remove the certificate for a new one",
                       cert_path.at, key_path.at);
    /* The key is written first, so a key without a certificate was never in use. */
    if (!has_cert) {
        int rc = make(ctx, &cert_pem, &key_pem, err);
        if (rc == 0)
            rc = tls_file_write(dir, key.at, S_IRUSR | S_IWUSR, &key_pem, err);
        if (rc == 0)
            rc = tls_file_write(dir, cert.at, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, &cert_pem, err);
        if (rc < 0)
            return rc;
    }
    return tls_identity_read(cert_path.at, key_path.at, ret, err);
}

struct self_signed {
    const char *const *names;
    int64_t now_ns;
};

static int self_signed_make(const void *ctx, gnutls_datum_t *cert_pem, gnutls_datum_t *key_pem, struct berth_err *err)
{
    const struct self_signed *s = ctx;
    return identity_make(s->names, s->now_ns, cert_pem, key_pem, err);
}

int tls_identity_ensure(const char *dir, const char *const *names, int64_t now_ns, struct tls_identity *ret,
                        struct berth_err *err)
{
    const struct self_signed s = {names, now_ns};
    return tls_pair_ensure(dir, "tls", self_signed_make, &s, ret, err);
}

/* tls_test.c - tests certificates: created, read, and rejected. */
#include "net/tls/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define NOW_NS INT64_C(1800000000000000000)

static const char *const no_names[] = {NULL};

/* A directory for one test, with the paths of a certificate in it. */
struct folder {
    char dir[64], cert[96], key[96];
};

static struct folder folder_new(void)
{
    struct folder f;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(f.dir, sizeof f.dir, "%.40s/tls-test.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    (void)snprintf(f.cert, sizeof f.cert, "%s/tls-cert.pem", f.dir);
    (void)snprintf(f.key, sizeof f.key, "%s/tls-key.pem", f.dir);
    return f;
}

static void folder_cleanup(struct folder *f)
{
    (void)chmod(f->dir, 0700);
    (void)unlink(f->cert);
    (void)unlink(f->key);
    if (rmdir(f->dir) != 0) /* the test left another file */
        (void)fprintf(stderr, "%s is not empty\n", f->dir);
}

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void identity_cleanup(struct tls_identity *id)
{
    tls_identity_done(id);
}

static gnutls_x509_crt_t certificate_of(const struct tls_identity *id)
{
    gnutls_x509_crt_t crt;
    gnutls_datum_t pem = {(unsigned char *)id->cert_pem, (unsigned)strlen(id->cert_pem)};
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
    return crt;
}

static void identity_is_created_once(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(identity) struct tls_identity made = {0}, again = {0};
    struct berth_err err;
    struct stat st;

    (void)state;
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &made, &err), 0);
    assert_int_equal(stat(f.key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(strncmp(made.pin, "sha256//", 8), 0);
    assert_int_equal(strlen(made.pin), 8 + 44);
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &again, &err), 0);
    assert_string_equal(made.pin, again.pin);
    assert_string_equal(made.cert_pem, again.cert_pem);
    assert_string_equal(made.key_pem, again.key_pem);
    tls_identity_done(&again);
    assert_int_equal(tls_identity_read(f.cert, f.key, &again, &err), 0);
    assert_string_equal(made.pin, again.pin);

    gnutls_x509_crt_t crt = certificate_of(&made);
    assert_int_equal(gnutls_x509_crt_get_version(crt), 3);
    assert_true(gnutls_x509_crt_get_activation_time(crt) < NOW_NS / 1000000000);
    time_t end = gnutls_x509_crt_get_expiration_time(crt);
    assert_true(end > NOW_NS / 1000000000 + 3640 * 86400L && end < NOW_NS / 1000000000 + 3660 * 86400L);
    unsigned bits;
    assert_int_equal(gnutls_x509_crt_get_pk_algorithm(crt, &bits), GNUTLS_PK_ECDSA);
    assert_int_equal(bits, 256);
    assert_int_equal(gnutls_x509_crt_check_issuer(crt, crt), 1);
    gnutls_x509_crt_deinit(crt);
}

static void certificate_contains_names_and_addresses(void **state)
{
    static const char *const names[] = {
        "head.cluster.example", "10.1.2.3", "2001:db8::5", "localhost", "10.1.2.3", NULL};
    static const struct {
        const char *name;
        bool want;
    } rows[] = {
        {"head.cluster.example", true },
        {"10.1.2.3",             true },
        {"2001:db8::5",          true },
        {"localhost",            true },
        {"127.0.0.1",            true },
        {"::1",                  true },
        {"10.1.2.4",             false},
        {"other.example",        false},
        {"cluster.example",      false},
    };
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(identity) struct tls_identity id = {0};

    (void)state;
    assert_int_equal(tls_identity_ensure(f.dir, names, NOW_NS, &id, NULL), 0);
    gnutls_x509_crt_t crt = certificate_of(&id);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((gnutls_x509_crt_check_hostname(crt, rows[i].name) != 0) != rows[i].want)
            fail_msg("%s", rows[i].name);
    unsigned count = 0;
    char name[64];
    for (size_t size = sizeof name; gnutls_x509_crt_get_subject_alt_name(crt, count, name, &size, NULL) >= 0;
         size = sizeof name)
        count++;
    assert_int_equal(count, 6); /* no duplicates */
    gnutls_x509_crt_deinit(crt);
}

static void invalid_names_are_rejected(void **state)
{
    static const char *const bad[] = {"", "two words", "line\nbreak", "\xc3\xa4.example"};
    CLEANUP(folder) struct folder f = folder_new();
    struct tls_identity id = {.pin = "untouched"};
    struct berth_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const names[] = {"good", bad[i], NULL};
        assert_int_equal(tls_identity_ensure(f.dir, names, NOW_NS, &id, &err), -EINVAL);
        assert_string_equal(id.pin, "untouched");
        assert_int_equal(access(f.cert, F_OK), -1);
        assert_int_equal(access(f.key, F_OK), -1);
    }
}

/* Tests the states that a crash between the two files can leave, and states that it cannot leave. */
static void incomplete_identity_is_recreated_or_rejected(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(identity) struct tls_identity first = {0}, second = {0};
    struct berth_err err;

    (void)state;
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &first, &err), 0);
    assert_int_equal(unlink(f.cert), 0);
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &second, &err), 0);
    assert_string_not_equal(first.pin, second.pin);
    assert_int_equal(unlink(f.key), 0);
    tls_identity_done(&first);
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &first, &err), -ENOENT);
    assert_non_null(strstr(err.text, "bring the key back"));
    assert_null(first.cert_pem);
}

static void mismatched_pairs_are_rejected(void **state)
{
    CLEANUP(folder) struct folder f = folder_new(), other = folder_new();
    CLEANUP(identity) struct tls_identity id = {0}, stranger = {0}, none = {0};
    struct berth_err err;

    (void)state;
    assert_int_equal(tls_identity_ensure(f.dir, no_names, NOW_NS, &id, &err), 0);
    assert_int_equal(tls_identity_ensure(other.dir, no_names, NOW_NS, &stranger, &err), 0);

    assert_int_equal(tls_identity_read(f.cert, other.key, &none, &err), -EINVAL);
    assert_non_null(strstr(err.text, "does not belong"));
    assert_int_equal(tls_identity_read(f.cert, f.cert, &none, &err), -EPERM); /* 0644 */
    assert_int_equal(tls_identity_read("/no/such.pem", f.key, &none, &err), -ENOENT);
    assert_int_equal(tls_identity_read(f.cert, "/no/such.pem", &none, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such.pem"));
    assert_int_equal(tls_identity_read(f.dir, f.key, &none, &err), -EINVAL);

    static const mode_t open_modes[] = {0604, 0644, 0620, 0666};
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        assert_int_equal(chmod(f.key, open_modes[i]), 0);
        assert_int_equal(tls_identity_read(f.cert, f.key, &none, &err), -EPERM);
        assert_non_null(strstr(err.text, "chmod 600"));
    }
    assert_int_equal(chmod(f.key, 0640), 0);
    assert_int_equal(tls_identity_read(f.cert, f.key, &none, &err), 0);
    tls_identity_done(&none);

    put(f.key, "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n", 0600);
    assert_int_equal(tls_identity_read(f.cert, f.key, &none, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no key in PEM"));
    put(f.cert, "nonsense", 0644);
    assert_int_equal(tls_identity_read(f.cert, f.key, &none, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no certificate in PEM"));
    assert_null(none.cert_pem);
}

static void missing_directory_is_an_error(void **state)
{
    struct tls_identity id = {0};
    struct berth_err err;

    (void)state;
    assert_int_equal(tls_identity_ensure("/no/such/folder", no_names, NOW_NS, &id, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/folder/tls-key.pem"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_is_created_once),      cmocka_unit_test(certificate_contains_names_and_addresses),
        cmocka_unit_test(invalid_names_are_rejected),    cmocka_unit_test(incomplete_identity_is_recreated_or_rejected),
        cmocka_unit_test(mismatched_pairs_are_rejected), cmocka_unit_test(missing_directory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

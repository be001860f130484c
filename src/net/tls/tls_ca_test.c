/* tls_ca_test.c - tests the certificate authority: requests that are signed or rejected, and handshakes with the
 * results.
 */
#include "net/tls/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/stat.h>
#include <time.h>

#include "net/client/client.h"
#include "net/kit_test.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (INT64_C(86400) * SECOND_NS)

static const char *const no_names[] = {NULL};

struct folder {
    char dir[64];
    struct tls_identity ca;
    int64_t now_ns;
};

static struct folder folder_new(void)
{
    struct folder f = {0};
    struct berth_err err;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(f.dir, sizeof f.dir, "%.40s/tls-ca-test.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    f.now_ns = (int64_t)time(NULL) * SECOND_NS;
    if (tls_ca_ensure(f.dir, f.now_ns, &f.ca, &err) != 0)
        fail_msg("%s", err.text);
    return f;
}

static const char *path_in(const struct folder *f, const char *name, char path[static 128])
{
    (void)snprintf(path, 128, "%s/%s", f->dir, name);
    return path;
}

static void folder_cleanup(struct folder *f)
{
    static const char *const files[] = {"ca-cert.pem", "ca-key.pem", "agents-key.pem", "c.pem", "k.pem", "other.pem"};
    char path[128];
    tls_identity_done(&f->ca);
    for (size_t i = 0; i < ROWS(files); i++)
        (void)unlink(path_in(f, files[i], path));
    if (rmdir(f->dir) != 0)
        (void)fprintf(stderr, "%s is not empty\n", f->dir);
}

static void identity_cleanup(struct tls_identity *id)
{
    tls_identity_done(id);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void ca_is_created_once(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(identity) struct tls_identity again = {0}, server = {0};
    struct tls_cert_info info;
    struct berth_err err;
    struct stat st;
    char path[128], other[128];

    (void)state;
    assert_int_equal(stat(path_in(&f, "ca-key.pem", path), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(tls_ca_ensure(f.dir, f.now_ns, &again, &err), 0);
    assert_string_equal(again.cert_pem, f.ca.cert_pem);
    assert_int_equal(tls_cert_info(f.ca.cert_pem, &info, &err), 0);
    assert_string_equal(info.common_name, "Berth cluster authority");
    assert_string_equal(info.pin, f.ca.pin);
    assert_true(info.not_after_ns > f.now_ns + 3640 * DAY_NS && info.not_after_ns < f.now_ns + 3660 * DAY_NS);

    /* A certificate that may not sign is rejected as a CA. */
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", no_names, f.now_ns, &server, &err), 0);
    put(path_in(&f, "ca-cert.pem", path), server.cert_pem);
    put(path_in(&f, "ca-key.pem", other), server.key_pem);
    tls_identity_done(&again);
    assert_int_equal(tls_ca_ensure(f.dir, f.now_ns, &again, &err), -EINVAL);
    assert_non_null(strstr(err.text, "may not sign"));
    assert_null(again.cert_pem);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(tls_ca_ensure(f.dir, f.now_ns, &again, &err), -ENOENT);
}

static void server_certificate_keeps_key_and_updates_names(void **state)
{
    static const char *const names[] = {"head.example", "10.1.2.3", NULL};
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(identity) struct tls_identity first = {0}, second = {0};
    struct berth_err err;
    gnutls_x509_crt_t crt;
    char path[128];

    (void)state;
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", no_names, f.now_ns, &first, &err), 0);
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", names, f.now_ns, &second, &err), 0);
    assert_string_equal(first.pin, second.pin);
    assert_string_not_equal(first.cert_pem, second.cert_pem);
    assert_string_not_equal(first.pin, f.ca.pin);
    gnutls_datum_t pem = {(unsigned char *)second.cert_pem, (unsigned)strlen(second.cert_pem)};
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
    assert_true(gnutls_x509_crt_check_hostname(crt, "head.example"));
    assert_true(gnutls_x509_crt_check_hostname(crt, "10.1.2.3"));
    assert_true(gnutls_x509_crt_check_hostname(crt, "127.0.0.1"));
    assert_false(gnutls_x509_crt_check_hostname(crt, "other.example"));
    gnutls_x509_crt_deinit(crt);

    put(path_in(&f, "agents-key.pem", path), "nonsense");
    tls_identity_done(&first);
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", no_names, f.now_ns, &first, &err), -EINVAL);
    assert_non_null(strstr(err.text, "agents-key.pem"));
    assert_null(first.key_pem);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static struct tls_client_cert_spec grant_for(const struct folder *f, const char *name)
{
    static const unsigned char stamp[TLS_SERIAL_PREFIX_BYTES] = {0xff, 0, 1, 2, 3, 4, 5, 0xab};
    return (struct tls_client_cert_spec){name, stamp, f->now_ns - DAY_NS, f->now_ns + DAY_NS};
}

static void request_is_signed_for_the_given_name(void **state)
{
    static const char longest[] = "node:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* 63 */
    CLEANUP(folder) struct folder f = folder_new();
    const char *const names[] = {"node:n1", longest};

    (void)state;
    assert_int_equal(strlen(longest), 68);
    for (size_t i = 0; i < ROWS(names); i++) {
        CLEANUP(mem) char *key = NULL, *request = NULL, *cert = NULL;
        struct tls_cert_info info;
        struct berth_err err;
        const struct tls_client_cert_spec grant = grant_for(&f, names[i]);
        assert_int_equal(tls_request_make(&key, &request, &err), 0);
        assert_non_null(strstr(key, "PRIVATE KEY"));
        if (tls_request_sign(&f.ca, request, &grant, &cert, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(tls_cert_info(cert, &info, &err), 0);
        assert_string_equal(info.common_name, names[i]);
        assert_int_equal(info.not_before_ns, grant.not_before_ns);
        assert_int_equal(info.not_after_ns, grant.not_after_ns);
        assert_int_equal(strncmp(info.serial, "01ff000102030405ab", 18), 0);
        assert_int_equal(strlen(info.serial), 34);
    }
}

/* Creates a request with a key of this kind, signed by that key or by another one. */
static char *request_of(gnutls_pk_algorithm_t kind, unsigned bits, bool by_another)
{
    gnutls_x509_privkey_t key, other;
    gnutls_x509_crq_t crq;
    gnutls_datum_t pem;
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(key, kind, bits, 0), 0);
    assert_int_equal(gnutls_x509_privkey_init(&other), 0);
    assert_int_equal(gnutls_x509_privkey_generate(other, kind, bits, 0), 0);
    assert_int_equal(gnutls_x509_crq_init(&crq), 0);
    assert_int_equal(gnutls_x509_crq_set_version(crq, 1), 0);
    assert_int_equal(gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_COMMON_NAME, 0, "user:root", 9), 0);
    assert_int_equal(gnutls_x509_crq_set_basic_constraints(crq, 1, 5), 0); /* requests to be a CA */
    assert_int_equal(gnutls_x509_crq_set_key(crq, key), 0);
    assert_int_equal(gnutls_x509_crq_sign2(crq, by_another ? other : key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crq_export2(crq, GNUTLS_X509_FMT_PEM, &pem), 0);
    char *text = mem_strdup((const char *)pem.data);
    gnutls_free(pem.data);
    gnutls_x509_crq_deinit(crq);
    gnutls_x509_privkey_deinit(key);
    gnutls_x509_privkey_deinit(other);
    return text;
}

static void extensions_of_a_request_are_ignored(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(mem) char *request = request_of(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), false);
    CLEANUP(mem) char *cert = NULL;
    const struct tls_client_cert_spec grant = grant_for(&f, "node:n1");
    struct tls_cert_info info;
    gnutls_x509_crt_t crt;
    unsigned critical;

    (void)state;
    assert_int_equal(tls_request_sign(&f.ca, request, &grant, &cert, NULL), 0);
    assert_int_equal(tls_cert_info(cert, &info, NULL), 0);
    assert_string_equal(info.common_name, "node:n1");
    gnutls_datum_t pem = {(unsigned char *)cert, (unsigned)strlen(cert)};
    assert_int_equal(gnutls_x509_crt_init(&crt), 0);
    assert_int_equal(gnutls_x509_crt_import(crt, &pem, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_x509_crt_get_ca_status(crt, &critical), 0);
    gnutls_x509_crt_deinit(crt);
}

static void hostile_requests_are_refused(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    const unsigned p256 = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    const struct tls_client_cert_spec grant = grant_for(&f, "node:n1");
    CLEANUP(mem) char *good = request_of(GNUTLS_PK_ECDSA, p256, false);
    CLEANUP(mem) char *forged = request_of(GNUTLS_PK_ECDSA, p256, true);
    CLEANUP(mem) char *rsa = request_of(GNUTLS_PK_RSA, 2048, false);
    CLEANUP(mem) char *p384 = request_of(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP384R1), false);
    CLEANUP(mem) char *changed = mem_strdup(good), *cut = mem_strdup(good), *large = mem_zalloc(20000), *cert = NULL;
    struct berth_err err;

    (void)state;
    changed[strlen(changed) / 2] = changed[strlen(changed) / 2] == 'A' ? 'B' : 'A';
    cut[strlen(cut) / 2] = '\0';
    memset(large, 'A', 19999);
    const struct {
        const char *text, *says;
    } rows[] = {
        {"",            "in PEM"          },
        {"nonsense",    "in PEM"          },
        {cut,           "in PEM"          },
        {f.ca.cert_pem, "in PEM"          },
        {f.ca.key_pem,  "in PEM"          },
        {large,         "longer than 8192"},
        {forged,        "by its own key"  },
        {changed,       "request: "       },
        {rsa,           "not ECDSA P-256" },
        {p384,          "not ECDSA P-256" },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(tls_request_sign(&f.ca, rows[i].text, &grant, &cert, &err), -EINVAL);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
        assert_null(cert);
    }
    static const char *const bad_names[] = {"", "two words", "node:\xc3\xa4", "line\nbreak"};
    for (size_t i = 0; i < ROWS(bad_names); i++) {
        const struct tls_client_cert_spec bad = grant_for(&f, bad_names[i]);
        assert_int_equal(tls_request_sign(&f.ca, good, &bad, &cert, &err), -EINVAL);
    }
    struct tls_client_cert_spec backwards = grant;
    backwards.not_after_ns = backwards.not_before_ns;
    assert_int_equal(tls_request_sign(&f.ca, good, &backwards, &cert, &err), -EINVAL);
    assert_int_equal(tls_cert_info("nonsense", &(struct tls_cert_info){0}, &err), -EINVAL);
}

/* ---- handshakes ------------------------------------------------------------------------------------------------- */

static void say_peer(void *ctx, struct http_request *x)
{
    const struct http_peer *peer = http_peer(x);
    CLEANUP(str) struct str said = {0};
    (void)ctx;
    if (peer)
        str_addf(&said, "%s %.18s %s", peer->name, peer->serial, peer->over ? "over" : "good");
    else
        str_add(&said, "-");
    http_answer(x, 200, NULL, NULL, said.at, said.len);
}

/* Creates a certificate in c.pem and k.pem of the folder. */
static void certify(const struct folder *f, const struct tls_identity *ca, const char *name, int64_t from_ns,
                    int64_t to_ns)
{
    CLEANUP(mem) char *key = NULL, *request = NULL, *cert = NULL;
    struct tls_client_cert_spec grant = grant_for(f, name);
    char path[128];
    grant.not_before_ns = f->now_ns + from_ns;
    grant.not_after_ns = f->now_ns + to_ns;
    assert_int_equal(tls_request_make(&key, &request, NULL), 0);
    assert_int_equal(tls_request_sign(ca, request, &grant, &cert, NULL), 0);
    put(path_in(f, "c.pem", path), cert);
    put(path_in(f, "k.pem", path), key);
}

static int ask(struct client_config config, struct str *said, struct berth_err *err)
{
    struct client *c = NULL;
    struct client_answer a = {0};
    int rc = client_new(&config, &c, err);
    if (rc == 0)
        rc = client_do(c, &(struct client_request){.method = "GET", .path = "/"}, &a, err);
    str_clear(said);
    str_add(said, str_text(&a.body));
    client_answer_done(&a);
    client_free(c);
    return rc;
}

static void handshakes(void **state)
{
    CLEANUP(folder) struct folder f = folder_new(), stranger = folder_new();
    CLEANUP(identity) struct tls_identity server = {0};
    CLEANUP(host) struct host h = {0};
    CLEANUP(str) struct str said = {0};
    char ca[128], foreign[128], cert[128], key[128];
    struct berth_err err;
    const struct {
        const char *label, *name;
        const struct tls_identity *by;
        int64_t from_ns, to_ns;
        const char *want;
    } rows[] = {
        {"good",         "node:n1",   &f.ca,        -DAY_NS,     DAY_NS,     "node:n1 01ff000102030405ab good"  },
        {"expired",      "node:n1",   &f.ca,        -2 * DAY_NS, -DAY_NS,    "node:n1 01ff000102030405ab over"  },
        {"not yet",      "node:n1",   &f.ca,        DAY_NS,      2 * DAY_NS, "-"                                },
        {"of a foreign", "node:n1",   &stranger.ca, -DAY_NS,     DAY_NS,     "-"                                },
        {"another name", "user:root", &f.ca,        -DAY_NS,     DAY_NS,     "user:root 01ff000102030405ab good"},
    };

    (void)state;
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", no_names, f.now_ns, &server, &err), 0);
    host_start(&h, (struct http_config){.cert_pem = server.cert_pem,
                                        .key_pem = server.key_pem,
                                        .client_ca_pem = f.ca.cert_pem,
                                        .handle = say_peer});
    struct client_config config = {.url = h.url,
                                   .ca_path = path_in(&f, "ca-cert.pem", ca),
                                   .cert_path = path_in(&f, "c.pem", cert),
                                   .key_path = path_in(&f, "k.pem", key)};
    for (size_t i = 0; i < ROWS(rows); i++) {
        certify(&f, rows[i].by, rows[i].name, rows[i].from_ns, rows[i].to_ns);
        if (ask(config, &said, &err) != 0)
            fail_msg("%s: %s", rows[i].label, err.text);
        if (strcmp(said.at, rows[i].want) != 0)
            fail_msg("%s: %s", rows[i].label, said.at);
    }
    struct client_config plain = {.url = h.url, .ca_path = ca};
    assert_int_equal(ask(plain, &said, &err), 0);
    assert_string_equal(said.at, "-");
    plain.ca_path = path_in(&stranger, "ca-cert.pem", foreign);
    assert_int_equal(ask(plain, &said, &err), -EPERM); /* this CA did not sign the server's certificate */
    plain.pin = server.pin;
    assert_int_equal(ask(plain, &said, &err), 0); /* but the pin matches */
    plain.pin = f.ca.pin;
    assert_int_equal(ask(plain, &said, &err), -EPERM);
}

static void invalid_client_certificates_are_rejected(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(str) struct str said = {0};
    char cert[128], key[128], other[128];
    struct berth_err err;

    (void)state;
    certify(&f, &f.ca, "node:n1", -DAY_NS, DAY_NS);
    CLEANUP(mem) char *key_pem = NULL, *request = NULL;
    assert_int_equal(tls_request_make(&key_pem, &request, NULL), 0);
    put(path_in(&f, "other.pem", other), key_pem);
    CLEANUP(identity) struct tls_identity server = {0};
    CLEANUP(host) struct host h = {0};
    assert_int_equal(tls_server_cert(&f.ca, f.dir, "agents", no_names, f.now_ns, &server, &err), 0);
    host_start(&h, (struct http_config){.cert_pem = server.cert_pem,
                                        .key_pem = server.key_pem,
                                        .client_ca_pem = f.ca.cert_pem,
                                        .handle = say_peer});
    struct client_config config = {
        .url = h.url, .pin = server.pin, .cert_path = path_in(&f, "c.pem", cert), .key_path = other};
    assert_int_equal(ask(config, &said, &err), -EINVAL);
    assert_non_null(strstr(err.text, "does not belong"));
    config.key_path = NULL;
    assert_int_equal(ask(config, &said, &err), -EINVAL);
    config.key_path = path_in(&f, "k.pem", key);
    config.pin = NULL;
    config.url = "http://127.0.0.1:1";
    assert_int_equal(ask(config, &said, &err), -EINVAL);
    assert_non_null(strstr(err.text, "without TLS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ca_is_created_once),
        cmocka_unit_test(server_certificate_keeps_key_and_updates_names),
        cmocka_unit_test(request_is_signed_for_the_given_name),
        cmocka_unit_test(extensions_of_a_request_are_ignored),
        cmocka_unit_test(hostile_requests_are_refused),
        cmocka_unit_test(handshakes),
        cmocka_unit_test(invalid_client_certificates_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

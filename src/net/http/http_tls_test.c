/* http_tls_test.c - tests the server with TLS: client certificates, and bounds that work differently with TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

#include "net/kit_test.h"

enum { DAY_S = 86400 };

/* ---- certificates ----------------------------------------------------------------------------------------------- */

struct pair {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    gnutls_datum_t crt_pem, key_pem;
    char crt_path[96], key_path[96];
};

static void pair_done(struct pair *p)
{
    gnutls_x509_crt_deinit(p->crt);
    gnutls_x509_privkey_deinit(p->key);
    gnutls_free(p->crt_pem.data);
    gnutls_free(p->key_pem.data);
    (void)unlink(p->crt_path);
    (void)unlink(p->key_path);
}

static void put(const char *path, const gnutls_datum_t *pem)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(pem->data, 1, pem->size, f), pem->size);
    assert_int_equal(fclose(f), 0);
}

/* issuer NULL: self-signed, and may sign others. */
static struct pair pair_new(const char *dir, const char *file, const void *name, size_t name_len,
                            const struct pair *issuer, const char *purpose, int days)
{
    struct pair p = {0};
    const unsigned char serial[] = {1};
    time_t now = time(NULL);
    unsigned bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);

    assert_int_equal(gnutls_x509_privkey_init(&p.key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(p.key, GNUTLS_PK_ECDSA, bits, 0), 0);
    assert_int_equal(gnutls_x509_crt_init(&p.crt), 0);
    assert_int_equal(gnutls_x509_crt_set_version(p.crt, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(p.crt, serial, sizeof serial), 0);
    if (name)
        assert_int_equal(gnutls_x509_crt_set_dn_by_oid(p.crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)name_len),
                         0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(p.crt, now - 10 * DAY_S), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(p.crt, now + days * DAY_S), 0);
    assert_int_equal(gnutls_x509_crt_set_key(p.crt, p.key), 0);
    assert_int_equal(gnutls_x509_crt_set_basic_constraints(p.crt, !issuer, -1), 0);
    if (purpose)
        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(p.crt, purpose, 0), 0);
    const struct pair *by = issuer ? issuer : &p;
    assert_int_equal(gnutls_x509_crt_sign2(p.crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(p.crt, GNUTLS_X509_FMT_PEM, &p.crt_pem), 0);
    assert_int_equal(gnutls_x509_privkey_export2(p.key, GNUTLS_X509_FMT_PEM, &p.key_pem), 0);
    (void)snprintf(p.crt_path, sizeof p.crt_path, "%s/%s.crt", dir, file);
    (void)snprintf(p.key_path, sizeof p.key_path, "%s/%s.key", dir, file);
    put(p.crt_path, &p.crt_pem);
    put(p.key_path, &p.key_pem);
    return p;
}

static struct pair named(const char *dir, const char *name, const struct pair *issuer, const char *purpose, int days)
{
    return pair_new(dir, name, name, strlen(name), issuer, purpose, days);
}

/* ---- client with a certificate ---------------------------------------------------------------------------------- */

static size_t take(char *at, size_t size, size_t count, void *ctx)
{
    str_add_bytes(ctx, at, size * count);
    return size * count;
}

/* Returns the status and the text of the answer; 0: no answer. */
static long ask(const char *url, const struct pair *shown, struct str *said)
{
    CURL *h = curl_easy_init();
    long status = 0;
    assert_non_null(h);
    str_clear(said);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, said);
    if (shown) {
        curl_easy_setopt(h, CURLOPT_SSLCERT, shown->crt_path);
        curl_easy_setopt(h, CURLOPT_SSLKEY, shown->key_path);
    }
    if (curl_easy_perform(h) == CURLE_OK)
        (void)curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(h);
    return status;
}

static void say_name(void *ctx, struct http_request *x)
{
    const char *name = http_peer_name(x);
    (void)ctx;
    name = name ? name : "-";
    http_answer(x, 200, NULL, NULL, name, strlen(name));
}

struct world {
    char dir[64];
    struct pair ca, server;
};

static struct world world_new(void)
{
    struct world w;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(w.dir, sizeof w.dir, "%.40s/http-tls-test.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(w.dir));
    w.ca = named(w.dir, "authority", NULL, NULL, 10);
    w.server = named(w.dir, "server", &w.ca, NULL, 10);
    return w;
}

static void world_cleanup(struct world *w)
{
    pair_done(&w->ca);
    pair_done(&w->server);
    if (rmdir(w->dir) != 0)
        (void)fprintf(stderr, "%s is not empty\n", w->dir);
}

static struct http_config world_config(const struct world *w)
{
    return (struct http_config){.cert_pem = (const char *)w->server.crt_pem.data,
                                .key_pem = (const char *)w->server.key_pem.data,
                                .client_ca_pem = (const char *)w->ca.crt_pem.data,
                                .handle = say_name};
}

static void certificates_are_verified(void **state)
{
    enum issuer { OURS, ANOTHER, ITSELF };
    static const struct {
        const char *name;
        enum issuer issuer;
        const char *purpose;
        int days;
        bool good;
    } rows[] = {
        {"for-clients",  OURS,    GNUTLS_KP_TLS_WWW_CLIENT, 10, true },
        {"for-anything", OURS,    NULL,                     10, true },
        {"for-servers",  OURS,    GNUTLS_KP_TLS_WWW_SERVER, 10, false},
        {"expired",      OURS,    NULL,                     -1, false},
        {"of-another",   ANOTHER, NULL,                     10, false},
        {"of-itself",    ITSELF,  NULL,                     10, false},
        {"#hash",        OURS,    NULL,                     10, false},
        {"com,ma",       OURS,    NULL,                     10, false},
    };
    CLEANUP(world) struct world w = world_new();
    struct pair stranger = named(w.dir, "stranger", NULL, NULL, 10);
    const struct pair *issuers[] = {&w.ca, &stranger, NULL};
    struct pair nameless = pair_new(w.dir, "nameless", NULL, 0, &w.ca, NULL, 10);
    struct pair nul = pair_new(w.dir, "nul", "admin\0.x", 8, &w.ca, NULL, 10);
    CLEANUP(host) struct host h = {0};
    CLEANUP(str) struct str said = {0};

    (void)state;
    host_start(&h, world_config(&w));
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct pair p = named(w.dir, rows[i].name, issuers[rows[i].issuer], rows[i].purpose, rows[i].days);
        long status = ask(h.url, &p, &said);
        pair_done(&p);
        if (status != 200 || strcmp(str_text(&said), rows[i].good ? rows[i].name : "-") != 0)
            fail_msg("%s: %ld \"%s\"", rows[i].name, status, str_text(&said));
    }
    assert_int_equal(ask(h.url, &nameless, &said), 200);
    assert_string_equal(said.at, "-");
    assert_int_equal(ask(h.url, &nul, &said), 200);
    assert_string_equal(said.at, "-");
    pair_done(&nameless);
    pair_done(&nul);
    assert_int_equal(ask(h.url, NULL, &said), 200);
    assert_string_equal(said.at, "-");
    pair_done(&stranger);
}

/* Without a CA the server requests no certificate, so no client has a name. */
static void without_ca_clients_have_no_names(void **state)
{
    CLEANUP(world) struct world w = world_new();
    struct pair node = named(w.dir, "node-1", &w.ca, NULL, 10);
    CLEANUP(host) struct host h = {0};
    CLEANUP(str) struct str said = {0};
    struct http_config config = world_config(&w);

    (void)state;
    config.client_ca_pem = NULL;
    host_start(&h, config);
    assert_int_equal(ask(h.url, &node, &said), 200);
    assert_string_equal(said.at, "-");
    pair_done(&node);
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

/* A connection without a TLS handshake is closed after the deadline, without an answer. */
static void missing_handshake_is_disconnected(void **state)
{
    CLEANUP(world) struct world w = world_new();
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = world_config(&w);

    (void)state;
    config.request_ns_max = 30 * KIT_MS;
    config.connections_per_address_max = 2;
    kit_start(&k, config);
    CLEANUP(talk) struct talk silent = talk_new(&k), plain = talk_new(&k), more = talk_new(&k);
    talk_hear_end(&k, &more); /* one connection too many */
    talk_say(&k, &plain, GET("/"));
    talk_hear_end(&k, &plain);
    talk_hear_end(&k, &silent);
    assert_int_equal(more.heard.len + silent.heard.len, 0);
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
    assert_int_equal(k.handled, 0);
}

/* A GnuTLS session in steps, so that one thread can run both ends. */
struct tls_client {
    struct talk talk;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static void tls_client_cleanup(struct tls_client *t)
{
    gnutls_deinit(t->session);
    gnutls_certificate_free_credentials(t->credentials);
    talk_cleanup(&t->talk);
}

static struct tls_client tls_client_begin(const struct kit *k)
{
    struct tls_client t = {.talk = talk_new(k)};
    assert_int_equal(gnutls_init(&t.session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(&t.credentials), 0);
    assert_int_equal(gnutls_set_default_priority(t.session), 0);
    assert_int_equal(gnutls_credentials_set(t.session, GNUTLS_CRD_CERTIFICATE, t.credentials), 0);
    gnutls_transport_set_int(t.session, t.talk.fd);
    assert_int_equal(fcntl(t.talk.fd, F_SETFL, O_NONBLOCK), 0);
    return t;
}

static void tls_client_handshake(struct kit *k, struct tls_client *t)
{
    int rc;
    while ((rc = gnutls_handshake(t->session)) != 0) {
        assert_int_equal(gnutls_error_is_fatal(rc), 0);
        kit_round(k);
    }
}

static struct tls_client tls_client_new(struct kit *k)
{
    struct tls_client t = tls_client_begin(k);
    tls_client_handshake(k, &t);
    return t;
}

static void tls_client_send(struct kit *k, struct tls_client *t, const char *text)
{
    while (gnutls_record_send(t->session, text, strlen(text)) == GNUTLS_E_AGAIN)
        kit_round(k);
}

/* Runs until the text was received, or (NULL) until the connection ended. Sends `again` whenever there is no data. */
static void tls_client_read_until(struct kit *k, struct tls_client *t, const char *want, const char *again)
{
    char buf[4096];
    while (!want || !strstr(str_text(&t->talk.heard), want)) {
        ssize_t n = gnutls_record_recv(t->session, buf, sizeof buf);
        if (n > 0) {
            str_add_bytes(&t->talk.heard, buf, (size_t)n);
        } else if (n == 0 || gnutls_error_is_fatal((int)n)) {
            if (want)
                fail_msg("the connection ended before \"%s\"", want);
            return;
        } else if (n == GNUTLS_E_AGAIN) {
            if (again)
                (void)gnutls_record_send(t->session, again, strlen(again));
            kit_round(k);
        }
    }
}

static void tls_client_expect(struct kit *k, struct tls_client *t, const char *want)
{
    tls_client_read_until(k, t, want, NULL);
}

static void refusals_arrive_through_tls(void **state)
{
    static const struct {
        const char *label, *text, *again, *want;
    } rows[] = {
        {"slow body",   "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n",                                  NULL, "HTTP/1.1 408 "},
        {"slow header", "POST / HTTP/1.1\r\nHost: h\r\n",                                                              NULL, "HTTP/1.1 408 "},
        {"slow chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",                            "0",  "HTTP/1.1 408 "},
        {"announced",   "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\n",                               "x",  "HTTP/1.1 413 "},
        {"chunks",      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nfff\r\n12345678", "x",
         "HTTP/1.1 413 "                                                                                                                    },
    };
    CLEANUP(world) struct world w = world_new();

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kit) struct kit k = {.body_max = i < 3 ? 1000 : 10};
        struct http_config config = world_config(&w);
        config.request_ns_max = 2000 * KIT_MS; /* the handshake counts, too */
        kit_start(&k, config);
        CLEANUP(tls_client) struct tls_client t = tls_client_new(&k);
        tls_client_send(&k, &t, rows[i].text);
        tls_client_read_until(&k, &t, NULL, rows[i].again);
        if (strncmp(str_text(&t.talk.heard), rows[i].want, strlen(rows[i].want)) != 0)
            fail_msg("%s: \"%s\"", rows[i].label, str_text(&t.talk.heard));
        assert_int_equal(k.handled, 0);
    }
}

/* The peer of a stream closes while nothing is sent. */
static void start_stream(void *ctx, struct http_request *x)
{
    http_stream(x, 200, NULL, NULL, kit_drop, ctx);
}

static void disconnect_of_tls_stream_is_noticed(void **state)
{
    CLEANUP(world) struct world w = world_new();
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = world_config(&w);

    (void)state;
    config.handle = start_stream;
    kit_start(&k, config);
    CLEANUP(tls_client) struct tls_client t = tls_client_new(&k);
    tls_client_send(&k, &t, GET("/"));
    KIT_UNTIL(&k, http_server_stats(k.server).streams == 1);
    for (int i = 0; i < 3; i++)
        kit_round(&k);
    talk_close(&t.talk);
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 0);
    assert_int_equal(k.dropped, 2); /* `closed`, and the data */
}

/* The answer exceeds the socket's buffer, so the server writes to a closed connection. */
static void answer_after_disconnect_is_harmless(void **state)
{
    enum { LEN = 16 << 20 };
    CLEANUP(world) struct world w = world_new();
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(mem) char *body = mem_zalloc(LEN);
    struct http_config config = world_config(&w);

    (void)state;
    config.handle = kit_keep;
    kit_start(&k, config);
    for (unsigned i = 1; i <= 2; i++) {
        CLEANUP(tls_client) struct tls_client t = tls_client_new(&k);
        tls_client_send(&k, &t, GET("/"));
        KIT_UNTIL(&k, k.kept);
        if (i == 1)
            talk_close(&t.talk);
        http_answer(take_ptr(&k.kept), 200, NULL, NULL, body, LEN);
        kit_round(&k);
        if (i == 2)
            talk_close(&t.talk);
        KIT_UNTIL(&k, k.dropped == i && http_server_stats(k.server).connections == 0);
    }
}

static void ring(void *ctx)
{
    *(bool *)ctx = true;
}

static void stream_or_name(void *ctx, struct http_request *x)
{
    if (strcmp(http_path(x), "/stream") == 0)
        start_stream(ctx, x);
    else
        say_name(ctx, x);
}

/* Counts how often the loop wakes up in a fixed time. */
static unsigned rounds_in_a_while(struct kit *k)
{
    bool rung = false;
    unsigned rounds = 0;
    struct loop_source *alarm = loop_timer_new(k->loop, ring, &rung);
    loop_timer_set(alarm, loop_now_ns(k->loop) + 30 * KIT_MS);
    while (!rung) {
        assert_int_equal(loop_once(k->loop, -1, NULL), 0);
        rounds++;
    }
    loop_source_free(alarm);
    return rounds;
}

static void waiting_connections_do_not_wake_the_loop(void **state)
{
    CLEANUP(world) struct world w = world_new();
    CLEANUP(kit) struct kit k = {0};
    struct http_config config = world_config(&w);

    (void)state;
    config.handle = stream_or_name;
    kit_start(&k, config);
    CLEANUP(tls_client) struct tls_client stream = tls_client_new(&k), half = tls_client_new(&k);
    CLEANUP(talk) struct talk fresh = talk_new(&k);
    tls_client_send(&k, &half, GET("/"));
    tls_client_expect(&k, &half, "\r\n\r\n-");
    tls_client_send(&k, &half, "GET / HTT");
    tls_client_send(&k, &stream, GET("/stream"));
    tls_client_expect(&k, &stream, "\r\n\r\n");
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 3);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(loop_once(k.loop, 0, NULL), 0);
    assert_true(rounds_in_a_while(&k) <= 3);
    talk_listen(&fresh);
    assert_false(fresh.ended);
}

/* Without pauses libmicrohttpd would retry continuously, many thousand times. */
static void stalled_handshake_costs_little_cpu_time(void **state)
{
    CLEANUP(world) struct world w = world_new();
    CLEANUP(kit) struct kit k = {0};
    char byte;

    (void)state;
    kit_start(&k, world_config(&w));
    CLEANUP(tls_client) struct tls_client t = tls_client_begin(&k);
    assert_int_equal(gnutls_handshake(t.session), GNUTLS_E_AGAIN); /* only the first message of the handshake is sent */
    while (recv(t.talk.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        kit_round(&k);
    assert_true(rounds_in_a_while(&k) < 150);
    tls_client_handshake(&k, &t); /* the handshake continues normally */
    tls_client_send(&k, &t, GET("/"));
    tls_client_expect(&k, &t, "\r\n\r\n-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates_are_verified),
        cmocka_unit_test(without_ca_clients_have_no_names),
        cmocka_unit_test(missing_handshake_is_disconnected),
        cmocka_unit_test(refusals_arrive_through_tls),
        cmocka_unit_test(disconnect_of_tls_stream_is_noticed),
        cmocka_unit_test(answer_after_disconnect_is_harmless),
        cmocka_unit_test(waiting_connections_do_not_wake_the_loop),
        cmocka_unit_test(stalled_handshake_costs_little_cpu_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

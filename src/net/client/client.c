/* client.c - one libcurl handle, which is reused so that its connections stay open. */
#include "net/client/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/tls/tls.h"

enum {
    CONNECT_TIMEOUT_MS = 10000,
    KEEPALIVE_S = 30,
};
#define BUFFERED_BYTES_MAX ((size_t)256 << 20)
#define TIMEOUT_NS_DEFAULT (INT64_C(30) * 1000000000)

struct client {
    CURL *curl;
    char *url; /* without a trailing slash */
    char *authorization, *ca_path, *pin, *cert_path, *key_path, *agent;
    int64_t timeout_ns;
    size_t answer_bytes_max;
    bool (*address_allowed)(void *ctx, const struct sockaddr *address);
    void *address_ctx;
};

/* The state of an answer that is being received. */
struct answer_state {
    CURL *curl;
    const struct client *client;
    struct client_answer answer;
    bool (*piece)(void *ctx, const char *at, size_t len); /* NULL: the answer is collected in its body */
    void *ctx;
    bool too_large, hung_up, address_refused;
};

/* ---- the client ------------------------------------------------------------------------------------------------- */

/* Returns whether the text contains no character that would end a header line. */
static bool is_header_safe(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

static int config_check(const struct client_config *config, struct berth_err *err)
{
    const char *url = config->url;
    bool https = strncasecmp(url, "https://", 8) == 0;
    const char *host = https ? url + 8 : strncasecmp(url, "http://", 7) == 0 ? url + 7 : NULL;

    if (!host || strchr("/:?#", *host) || strpbrk(url, "?# \t\r\n"))
        return err_set(err, EINVAL, "'%s' is no address of a server; it looks like http://127.0.0.1:3980", url);
    if (strcspn(host, "@") < strcspn(host, "/"))
        return err_set(err, EINVAL, "the server's address has a name or password in it; use a token instead");
    if (config->token && !is_header_safe(config->token))
        return err_set(err, EINVAL, "the token has a line break or another control character in it");
    if (config->pin && strncmp(config->pin, "sha256//", 8) != 0)
        return err_set(err, EINVAL, "the pin '%s' does not begin with sha256//", config->pin);
    if (config->pin && !https)
        return err_set(err, EINVAL, "a pin is of no use without TLS; the address %s should begin with https://", url);
    if (!config->cert_path != !config->key_path)
        return err_set(err, EINVAL, "a certificate needs its key, and a key its certificate");
    if (config->cert_path && !https)
        return err_set(err, EINVAL, "a certificate is of no use without TLS; the address %s should begin with https://",
                       url);
    if (!config->cert_path)
        return 0;
    struct tls_identity id = {0}; /* checked here, because libcurl does not explain what is wrong */
    int rc = tls_identity_read(config->cert_path, config->key_path, &id, err);
    tls_identity_done(&id);
    return rc;
}

static char *copy(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

int client_new(const struct client_config *config, struct client **ret, struct berth_err *err)
{
    int rc = config_check(config, err);
    if (rc < 0)
        return rc;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ENOMEM, "cannot start libcurl");
    struct client *c = mem_zalloc(sizeof *c);
    c->curl = curl_easy_init();
    c->url = mem_strdup(config->url);
    for (size_t len = strlen(c->url); len && c->url[len - 1] == '/'; len--)
        c->url[len - 1] = '\0';
    c->ca_path = copy(config->ca_path);
    c->pin = copy(config->pin);
    c->cert_path = copy(config->cert_path);
    c->key_path = copy(config->key_path);
    c->agent = mem_strdup(config->agent ? config->agent : "berth");
    c->timeout_ns = config->timeout_ns ? config->timeout_ns : TIMEOUT_NS_DEFAULT;
    c->answer_bytes_max = config->answer_bytes_max ? config->answer_bytes_max : BUFFERED_BYTES_MAX;
    c->address_allowed = config->address_allowed;
    c->address_ctx = config->address_ctx;
    if (config->token) {
        struct str header = {0};
        str_addf(&header, "Authorization: Bearer %s", config->token);
        c->authorization = str_take(&header);
    }
    if (!c->curl) {
        client_free(c);
        return err_set(err, ENOMEM, "cannot start libcurl");
    }
    *ret = c;
    return 0;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->curl);
    curl_global_cleanup();
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    mem_free(c->authorization);
    mem_free(c->url);
    mem_free(c->ca_path);
    mem_free(c->pin);
    mem_free(c->cert_path);
    mem_free(c->key_path);
    mem_free(c->agent);
    mem_free(c);
}

void client_answer_done(struct client_answer *a)
{
    str_done(&a->body);
    *a = (struct client_answer){0};
}

void client_encode(struct str *to, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("-._~", *p) != NULL;
        if (plain) {
            str_add_char(to, (char)*p);
        } else {
            const char escape[] = {'%', digits[*p >> 4], digits[*p & 15]};
            str_add_bytes(to, escape, sizeof escape);
        }
    }
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

static size_t take_body(char *at, size_t size, size_t count, void *ctx)
{
    struct answer_state *r = ctx;
    size_t len = size * count;
    long status = 0;

    (void)curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (r->piece && status == 200) {
        if (r->piece(r->ctx, at, len))
            return len;
        r->hung_up = true;
        return 0;
    }
    if (len > r->client->answer_bytes_max - r->answer.body.len) {
        r->too_large = true;
        return 0;
    }
    str_add_bytes(&r->answer.body, at, len);
    return len;
}

static size_t take_header(char *at, size_t size, size_t count, void *ctx)
{
    static const char name[] = "retry-after:";
    struct answer_state *r = ctx;
    size_t len = size * count;

    if (len > sizeof name && strncasecmp(at, name, sizeof name - 1) == 0) {
        uint64_t seconds = 0;
        size_t i = sizeof name - 1;
        for (; i < len && at[i] == ' '; i++)
            ;
        for (; i < len && at[i] >= '0' && at[i] <= '9' && seconds < UINT32_MAX; i++)
            seconds = seconds * 10 + (uint64_t)(at[i] - '0');
        r->answer.retry_after_s = seconds;
    }
    return len;
}

/* ---- the request ------------------------------------------------------------------------------------------------ */

static void header_add(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer)
        *list = longer;
}

static void slist_cleanup(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}

static int request_check(const struct client_request *q, struct berth_err *err)
{
    bool good = q->path[0] == '/' && q->method[0];
    for (const unsigned char *p = (const unsigned char *)q->path; *p; p++)
        good = good && *p > ' ' && *p < 0x7f;
    for (const char *p = q->method; *p; p++)
        good = good && *p >= 'A' && *p <= 'Z';
    if (!good)
        return err_set(err, EINVAL, "cannot ask for '%s': the path has to begin with / and to be percent-encoded",
                       q->path);
    for (const char *const *h = q->headers; h && *h; h++)
        if (!is_header_safe(*h))
            return err_set(err, EINVAL, "a header of the request has a line break or another control character in it");
    return 0;
}

/* Returns whether the request has a body. The length of an empty body is sent, too. */
static bool has_body(const struct client_request *q)
{
    return q->body || strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0 ||
           strcmp(q->method, "PATCH") == 0;
}

static void headers_make(const struct client *c, const struct client_request *q, struct curl_slist **list)
{
    if (c->authorization)
        header_add(list, c->authorization);
    for (const char *const *h = q->headers; h && *h; h++)
        header_add(list, *h);
    if (has_body(q)) {
        CLEANUP(str) struct str type = {0};
        str_addf(&type, "Content-Type: %s", q->content_type ? q->content_type : "application/json");
        header_add(list, type.at);
    }
}

/* Checks the address that libcurl is about to connect to, so a name that resolves differently later cannot bypass the
 * check. */
static curl_socket_t socket_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct answer_state *r = ctx;
    (void)purpose;
    if (!r->client->address_allowed(r->client->address_ctx, &to->addr)) {
        r->address_refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void options_set(const struct client *c, const struct client_request *q, const char *url,
                        struct curl_slist *headers, struct answer_state *r)
{
    CURL *h = c->curl;

    curl_easy_reset(h); /* keeps open connections */
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_PROXY, ""); /* servers of the cluster are reached without a proxy */
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, c->agent);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    if (c->address_allowed) {
        curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, socket_open);
        curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, r);
    }
    if (!r->piece)
        curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)(c->timeout_ns / 1000000 + 1));
    if (c->ca_path)
        curl_easy_setopt(h, CURLOPT_CAINFO, c->ca_path);
    if (c->cert_path) {
        curl_easy_setopt(h, CURLOPT_SSLCERT, c->cert_path);
        curl_easy_setopt(h, CURLOPT_SSLKEY, c->key_path);
    }
    if (c->pin) { /* instead of the host name and the CA */
        curl_easy_setopt(h, CURLOPT_PINNEDPUBLICKEY, c->pin);
        curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (strcmp(q->method, "HEAD") == 0) {
        curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
    } else {
        if (has_body(q)) {
            curl_easy_setopt(h, CURLOPT_POSTFIELDS, q->body ? q->body : "");
            curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
        }
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, q->method);
    }
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, r);
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* Translates a libcurl error to an errno and a text for the user. */
static int curl_error_set(const struct client *c, CURLcode code, const struct answer_state *r, struct berth_err *err)
{
    const char *url = c->url;
    long os = 0;

    (void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &os);
    if (r->address_refused)
        return err_set(err, EPERM, "%s has an address that may not be connected to", url);
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        if (os == ECONNREFUSED || os == 0)
            return err_set(err, ECONNREFUSED,
                           "cannot reach %s: connection refused; is berthd running? (systemctl status berthd)", url);
        return err_set(err, (int)os, "cannot reach %s: %s", url, strerror((int)os));
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(err, EHOSTUNREACH, "cannot reach %s: no such host; is the name right?", url);
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, ETIMEDOUT, "no answer from %s in time; is the server overloaded, or a firewall between?",
                       url);
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return err_set(err, EPERM,
                       "the certificate of %s is not the one that was pinned; either it was replaced (ask for its new "
                       "pin and give it with --pin sha256//...) or someone is listening in",
                       url);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(
            err, EPERM,
            "the certificate of %s is not signed by an authority that this machine trusts, or is for another "
            "name; berthd prints its pin when it starts: give it with --pin sha256//..., or the authority "
            "with --ca FILE",
            url);
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(err, ENOENT, "cannot read certificates of authorities from %s",
                       c->ca_path ? c->ca_path : "the system's store");
    case CURLE_SSL_CONNECT_ERROR:
        return err_set(err, EPROTO, "%s does not speak TLS as it should; is it http:// instead?", url);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(err, ECONNRESET, "%s closed the connection before the end of its answer; try again", url);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
        return err_set(err, EPROTO, "what answers at %s is no HTTP server; is the port right, or is it https://?", url);
    case CURLE_URL_MALFORMAT:
        return err_set(err, EINVAL, "'%s' is no address of a server; it looks like http://127.0.0.1:3980", url);
    case CURLE_OUT_OF_MEMORY: return err_set(err, ENOMEM, "no memory for an answer of %s", url);
    default: break;
    }
    if (r->too_large)
        return err_set(err, EFBIG, "the answer of %s is larger than %zu bytes; ask for less at a time", url,
                       c->answer_bytes_max);
    return err_set(err, EIO, "cannot talk to %s: %s", url, curl_easy_strerror(code));
}

static int perform(struct client *c, const struct client_request *q, struct answer_state *r, struct client_answer *ret,
                   struct berth_err *err)
{
    CLEANUP(slist) struct curl_slist *headers = NULL;
    CLEANUP(str) struct str url = {0};
    int rc = request_check(q, err);
    if (rc < 0)
        return rc;

    str_addf(&url, "%s%s", c->url, q->path);
    r->curl = c->curl;
    r->client = c;
    headers_make(c, q, &headers);
    options_set(c, q, url.at, headers, r);
    CURLcode code = curl_easy_perform(c->curl);
    if (code != CURLE_OK && !r->hung_up) {
        rc = curl_error_set(c, code, r, err);
        str_done(&r->answer.body);
        return rc;
    }
    long status = 0;
    const char *type = NULL;
    (void)curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
    r->answer.status = (int)status;
    (void)snprintf(r->answer.content_type, sizeof r->answer.content_type, "%s", type ? type : "");
    *ret = r->answer;
    return 0;
}

int client_do(struct client *c, const struct client_request *request, struct client_answer *ret, struct berth_err *err)
{
    struct answer_state r = {0};
    return perform(c, request, &r, ret, err);
}

int client_stream(struct client *c, const struct client_request *request,
                  bool (*piece)(void *ctx, const char *at, size_t len), void *ctx, struct client_answer *ret,
                  struct berth_err *err)
{
    struct answer_state r = {.piece = piece, .ctx = ctx};
    assert(piece);
    return perform(c, request, &r, ret, err);
}

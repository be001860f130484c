/* mail.c - sends a mail with libcurl. */
#include "net/client/mail.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct rest {
    const char *at;
    size_t len;
};

static size_t read_text(char *buf, size_t size, size_t n, void *ctx)
{
    struct rest *rest = ctx;
    size_t len = rest->len < size * n ? rest->len : size * n;
    memcpy(buf, rest->at, len);
    rest->at += len;
    rest->len -= len;
    return len;
}

static bool is_plain_address(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p <= 0x20 || *p == 0x7f || *p == '<' || *p == '>')
            return false;
    return *text;
}

static int code_of(CURLcode rc)
{
    return rc == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT : rc == CURLE_COULDNT_CONNECT ? ECONNREFUSED : EIO;
}

int mail_send(const struct mail *m, struct berth_err *err)
{
    char from[320], to[320], why[CURL_ERROR_SIZE] = "";
    struct rest rest = {m->text, strlen(m->text)};
    if (strncmp(m->server, "smtp://", 7) != 0 && strncmp(m->server, "smtps://", 8) != 0)
        return err_set(err, EINVAL, "'%s' is no server for mail; it looks like smtp://mail.example.org:25", m->server);
    if (!is_plain_address(m->from) || !is_plain_address(m->to) || strlen(m->from) > 254 || strlen(m->to) > 254)
        return err_set(err, EINVAL, "an address of the mail is none");
    (void)snprintf(from, sizeof from, "<%s>", m->from);
    (void)snprintf(to, sizeof to, "<%s>", m->to);
    CURL *curl = curl_easy_init();
    struct curl_slist *list = curl_slist_append(NULL, to);
    if (!curl || !list) {
        curl_slist_free_all(list);
        curl_easy_cleanup(curl);
        return err_set(err, ENOMEM, "libcurl cannot begin");
    }
    (void)curl_easy_setopt(curl, CURLOPT_URL, m->server);
    (void)curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from);
    (void)curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, list);
    (void)curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_text);
    (void)curl_easy_setopt(curl, CURLOPT_READDATA, &rest);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(m->timeout_ns / 1000000));
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    (void)curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)CURLUSESSL_TRY);
    CURLcode rc = curl_easy_perform(curl);
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    return rc == CURLE_OK ? 0 : err_set(err, code_of(rc), "%s: %s", m->server, *why ? why : curl_easy_strerror(rc));
}

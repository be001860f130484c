/* async_headers.h - lists of request headers, made once and shared: those of many requests are few and alike.
 *
 * A part of net/client/async.h.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

struct header_set;

struct header_sets {
    struct header_set **at;
    size_t len, cap;
};

/* Those that are still in use go, too. */
void header_sets_done(struct header_sets *all);

/* The list of a bearer token, a content type and what is accepted; NULL: without. It stays until header_set_leave. */
struct header_set *header_set_take(struct header_sets *all, const char *token, const char *content_type,
                                   const char *accept);
void header_set_leave(struct header_set *h);
struct curl_slist *header_set_list(const struct header_set *h);

/* Appends a line of both texts; nothing when the value is NULL. */
void header_add(struct curl_slist **list, const char *prefix, const char *value);

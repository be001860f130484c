/* async_headers.h - cached lists of request headers: many requests share few different lists.
 *
 * Part of net/client/async.h.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

struct header_set;

struct header_sets {
    struct header_set **at;
    size_t len, cap;
};

/* Frees all lists, including lists that are still in use. */
void header_sets_done(struct header_sets *all);

/* Returns the list for a bearer token, a content type and an Accept header; NULL: without that header. The list stays
 * valid until header_set_unref. */
struct header_set *header_set_ref(struct header_sets *all, const char *token, const char *content_type,
                                  const char *accept);
void header_set_unref(struct header_set *h);
struct curl_slist *header_set_list(const struct header_set *h);

/* Appends the header line prefix + value; does nothing if value is NULL. */
void header_add(struct curl_slist **list, const char *prefix, const char *value);

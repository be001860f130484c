/* async_headers.c - finds header lists by comparing texts, because there are only a few lists. */
#include "net/client/async_headers.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum { KEPT_MAX = 16, PARTS = 3 };

static const char *const prefixes[PARTS] = {"Authorization: Bearer ", "Content-Type: ", "Accept: "};

struct header_set {
    char *parts[PARTS]; /* NULL: absent */
    struct curl_slist *list;
    unsigned users;
};

void header_add(struct curl_slist **list, const char *prefix, const char *value)
{
    CLEANUP(str) struct str line = {0};
    if (!value)
        return;
    str_add(&line, prefix);
    str_add(&line, value);
    struct curl_slist *longer = curl_slist_append(*list, line.at);
    if (longer)
        *list = longer;
}

static struct header_set *set_new(const char *const parts[PARTS])
{
    struct header_set *h = mem_zalloc(sizeof *h);
    for (size_t i = 0; i < PARTS; i++) {
        h->parts[i] = parts[i] ? mem_strdup(parts[i]) : NULL;
        header_add(&h->list, prefixes[i], parts[i]);
    }
    header_add(&h->list, "Expect:", ""); /* a large report must not wait for a "100 Continue" that is never sent */
    return h;
}

static void set_free(struct header_set *h)
{
    curl_slist_free_all(h->list);
    for (size_t i = 0; i < PARTS; i++)
        mem_free(h->parts[i]);
    mem_free(h);
}

static bool is_set(const struct header_set *h, const char *const parts[PARTS])
{
    for (size_t i = 0; i < PARTS; i++)
        if (!h->parts[i] != !parts[i] || (parts[i] && strcmp(h->parts[i], parts[i]) != 0))
            return false;
    return true;
}

/* Frees unused lists if there are many, because tokens are renewed. */
static void trim(struct header_sets *all)
{
    for (size_t i = all->len; all->len > KEPT_MAX && i-- > 0;)
        if (all->at[i]->users == 0) {
            set_free(all->at[i]);
            all->at[i] = all->at[--all->len];
        }
}

struct header_set *header_set_ref(struct header_sets *all, const char *token, const char *content_type,
                                  const char *accept)
{
    const char *const parts[PARTS] = {token, content_type, accept};
    struct header_set *h = NULL;
    for (size_t i = 0; !h && i < all->len; i++)
        if (is_set(all->at[i], parts))
            h = all->at[i];
    if (!h) {
        trim(all);
        h = set_new(parts);
        vec_push(all, h);
    }
    h->users++;
    return h;
}

void header_set_unref(struct header_set *h)
{
    assert(h->users > 0);
    h->users--;
}

struct curl_slist *header_set_list(const struct header_set *h)
{
    return h->list;
}

void header_sets_done(struct header_sets *all)
{
    while (all->len)
        set_free(all->at[--all->len]);
    vec_done(all);
}

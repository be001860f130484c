/* watch.h - one resource of the API server, listed and watched: what is put and what is dropped, without a gap and without an end.
 *
 * The initial state comes as a watch that sends it first (sendInitialEvents), or as a list in pages where that is refused. From then on
 * the stream is followed; one that ends is begun again from the last version seen, and when the server no longer knows that version
 * (410), everything is read anew. The consumer is told differences only: what has the version it had is not put again,
 * what is not there any more is dropped, and what was deleted and made again under its name is dropped before it is put.
 *
 * Until `synced` the view is half loaded and nobody may decide by it. Afterwards it is always one that the server had, however old.
 *
 * Kept per object: key, uid and version, some 130 bytes (kube/client/known_objects.h). Objects themselves are the consumer's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kube/client/api.h"
#include "kube/client/proto.h"

struct kube_watch;

/* An object as it came; all of it lives for the call only. */
struct kube_object {
    const char *namespace, *name; /* "" for an object that is in none; never NULL */
    const char *uid;
    uint64_t version; /* its resourceVersion */
    struct proto_reader
        raw;            /* KUBE_PROTOBUF: the object without envelope; empty in a drop that was found by a relist */
    const json_t *json; /* KUBE_JSON: the same as a tree; NULL otherwise */
};

struct kube_watch_config {
    struct kube_api *api; /* outlives it */
    struct loop *loop;
    const char *path;        /* "/api/v1/pods" */
    const char *query;       /* selectors, encoded: "fieldSelector=spec.nodeName%3D"; NULL: all there is */
    enum kube_format format; /* KUBE_JSON for custom resources */
    /* Whoever is called may not free the watch. */
    void (*put)(void *ctx, const struct kube_object *o); /* new, or changed */
    void (*drop)(void *ctx, const struct kube_object *o);
    void (*synced)(void *ctx);                    /* once, when all is there */
    void (*trouble)(void *ctx, const char *text); /* for the log: it goes on by itself. NULL: nobody listens */
    /* Not NULL: the consumer can do without. Told when the server does not let us read it (403) or does not have it (404): once, until it does. What is
     * known stays as it is, at first that there is nothing, and counts as synced; it is asked for again after refused_ns. */
    void (*refused)(void *ctx, int status, const char *text);
    int64_t refused_ns; /* 0: a minute */
    void *ctx;
    bool pages;       /* lists in pages at once, without trying the other way */
    size_t page_len;  /* 0: 500 */
    int64_t pause_ns; /* before a second try; doubles up to 10 times that, with some luck mixed in; 0: 0.5 s */
};

/* Begins at once; texts are copied. */
struct kube_watch *kube_watch_new(const struct kube_watch_config *config);
void kube_watch_free(struct kube_watch *w); /* NULL is fine */

bool kube_watch_synced(const struct kube_watch *w);
/* Is it being followed now, or is it between two tries? */
bool kube_watch_follows(const struct kube_watch *w);
size_t kube_watch_len(const struct kube_watch *w); /* objects */

struct kube_watch_stats {
    uint64_t puts, drops, bookmarks, streams, lists; /* told; told; seen; begun; pages asked for */
    uint64_t relists, lost;                          /* everything read anew; streams that broke */
    int64_t last_ns;                                 /* when something last came, by the loop's clock */
};
struct kube_watch_stats kube_watch_stats(const struct kube_watch *w);

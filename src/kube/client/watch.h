/* watch.h - list-and-watch of one resource of the API server: reports objects that are put and dropped, without gaps,
 * indefinitely.
 *
 * The initial state comes as a watch that sends it first (sendInitialEvents), or as a paged list if that is rejected.
 * Then the stream is followed. A stream that ends is resumed from the last version seen; if the server no longer knows
 * that version (410), everything is listed anew. The consumer gets differences only: an object with its known version
 * is not put again, one that no longer exists is dropped, and one that was deleted and created again under the same
 * name is dropped before it is put.
 *
 * Until `synced` the view is incomplete and must not be used for decisions. Afterwards it always equals a state that
 * the server had, possibly an old one.
 *
 * Kept per object: key, uid and version, about 130 bytes (kube/client/known_objects.h). The consumer keeps the objects
 * themselves.
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

/* An object as received; valid during the call only. */
struct kube_object {
    const char *namespace, *name; /* "" for a cluster-scoped object; never NULL */
    const char *uid;
    uint64_t version;        /* its resourceVersion */
    struct proto_reader raw; /* KUBE_PROTOBUF: the object without envelope; empty in a drop found by a new listing */
    const json_t *json;      /* KUBE_JSON: the parsed object; otherwise NULL */
};

struct kube_watch_config {
    struct kube_api *api; /* must outlive the watch */
    struct loop *loop;
    const char *path;        /* "/api/v1/pods" */
    const char *query;       /* encoded selectors: "fieldSelector=spec.nodeName%3D"; NULL: all objects */
    enum kube_format format; /* KUBE_JSON for custom resources */
    /* Callbacks must not free the watch. */
    void (*put)(void *ctx, const struct kube_object *o); /* added or changed */
    void (*drop)(void *ctx, const struct kube_object *o);
    void (*synced)(void *ctx);                    /* called once, when the initial state is complete */
    void (*trouble)(void *ctx, const char *text); /* messages for the log; the watch retries by itself. NULL: none */
    /* Not NULL: the resource is optional. Called when the server denies (403) or lacks it (404), once until it is
     * available again. The known objects, at first none, stay and count as synced; the watch retries after
     * refused_ns. */
    void (*refused)(void *ctx, int status, const char *text);
    int64_t refused_ns; /* 0: a minute */
    void *ctx;
    bool pages;       /* uses paged lists at once, without trying a streamed list */
    size_t page_len;  /* 0: 500 */
    int64_t pause_ns; /* pause before a retry; doubles up to 10 times that, with random jitter; 0: 0.5 s */
};

/* Starts at once; texts are copied. */
struct kube_watch *kube_watch_new(const struct kube_watch_config *config);
void kube_watch_free(struct kube_watch *w); /* accepts NULL */

bool kube_watch_synced(const struct kube_watch *w);
/* Reports whether a stream is being followed now, rather than a retry pending. */
bool kube_watch_follows(const struct kube_watch *w);
size_t kube_watch_len(const struct kube_watch *w); /* number of objects */

struct kube_watch_stats {
    uint64_t puts, drops, bookmarks, streams, lists; /* reported; reported; seen; begun; pages requested */
    uint64_t relists, lost;                          /* full listings after the first; streams that broke */
    int64_t last_ns;                                 /* when data last arrived, in the loop's clock */
};
struct kube_watch_stats kube_watch_stats(const struct kube_watch *w);

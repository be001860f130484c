#include "kube/sched/provision.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum { CLAIMS_MAX = 64 };
#define PATIENCE_NS (INT64_C(600) * 1000000000)

/* A pod whose claims are being provisioned or bound. */
struct pod_claims {
    uint64_t instance;
    int64_t until_ns;
    size_t under_way; /* number of requests in progress */
    uint64_t asked;   /* bit set by claim index of cache_claim_volumes */
    char *trouble;    /* first failure; NULL: none */
};

/* A request in progress for one claim. */
struct claim_request {
    struct kube_provisioner *p;
    struct claim_request *prev, *next;
    struct kube_call *call;
    uint64_t instance;
    bool looks; /* the request reads the volume before reserving it */
    char *namespace, *claim, *uid, *volume;
};

struct kube_provisioner {
    struct kube_api *api;
    struct cache *cache;
    struct loop *loop;
    struct loop_source *timer;
    int64_t timer_ns; /* when the timer fires */
    kube_provisioned *done;
    void *ctx;
    VEC(struct pod_claims) awaiting_pods;
    struct claim_request *first;
};

static void on_answer(void *ctx, const struct kube_answer *answer);

/* ---- requests --------------------------------------------------------------------------------------------------- */

static struct claim_request *claim_request_new(struct kube_provisioner *p, uint64_t instance,
                                               const struct cache_claim_volume *v)
{
    struct claim_request *e = mem_zalloc(sizeof *e);
    *e = (struct claim_request){.p = p,
                                .next = p->first,
                                .instance = instance,
                                .namespace = mem_strdup(v->claim_namespace),
                                .claim = mem_strdup(v->claim),
                                .uid = mem_strdup(v->claim_uid),
                                .volume = mem_strdup(v->volume)};
    if (p->first)
        p->first->prev = e;
    p->first = e;
    return e;
}

static void claim_request_free(struct claim_request *e)
{
    if (e->prev)
        e->prev->next = e->next;
    else
        e->p->first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    mem_free(e->namespace);
    mem_free(e->claim);
    mem_free(e->uid);
    mem_free(e->volume);
    mem_free(e);
}

static void claim_request_send(struct claim_request *e, const char *method, const char *path, const json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    e->call = kube_start(e->p->api, &(struct kube_request){.method = method,
                                                           .path = path,
                                                           .patch = body ? KUBE_MERGE_PATCH : NULL,
                                                           .body = text,
                                                           .body_len = text ? strlen(text) : 0,
                                                           .rank = KUBE_USUAL,
                                                           .harmless = true,
                                                           .done = on_answer,
                                                           .ctx = e});
    free(text);
}

/* Sets the claim's selected-node annotation, which its provisioner reads. */
static void claim_mark(struct claim_request *e, const char *node)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "/api/v1/namespaces/%s/persistentvolumeclaims/%s", e->namespace, e->claim);
    json_t *body = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", e->uid, "annotations",
                             "volume.kubernetes.io/selected-node", node);
    claim_request_send(e, "PATCH", path.at, body);
    json_decref(body);
}

static void volume_check(struct claim_request *e)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "/api/v1/persistentvolumes/%s", e->volume);
    e->looks = true;
    claim_request_send(e, "GET", path.at, NULL);
}

/* Reserves the volume for the claim, based on the version just read: the API server rejects a concurrent write. Returns
 * NULL if it is done already. */
static const char *volume_mark(struct claim_request *e, const struct kube_answer *answer)
{
    json_t *volume = json_loadb(answer->body, answer->len, 0, NULL);
    const json_t *claim = json_object_get(json_object_get(volume, "spec"), "claimRef");
    const char *uid = json_string_value(json_object_get(claim, "uid"));
    const char *version = json_string_value(json_object_get(json_object_get(volume, "metadata"), "resourceVersion"));
    const char *trouble = NULL;
    if (uid && strcmp(uid, e->uid) != 0)
        trouble = "the volume is bound to another claim";
    else if (!version)
        trouble = "the volume cannot be read";
    if (!trouble) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "/api/v1/persistentvolumes/%s", e->volume);
        json_t *body = json_pack("{s:{s:s,s:{s:s}},s:{s:{s:s,s:s,s:s,s:s,s:s}}}", "metadata", "resourceVersion",
                                 version, "annotations", "pv.kubernetes.io/bound-by-controller", "yes", "spec",
                                 "claimRef", "kind", "PersistentVolumeClaim", "apiVersion", "v1", "namespace",
                                 e->namespace, "name", e->claim, "uid", e->uid);
        e->looks = false;
        claim_request_send(e, "PATCH", path.at, body);
        json_decref(body);
    }
    json_decref(volume);
    return trouble;
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static struct pod_claims *pod_claims_find(struct kube_provisioner *p, uint64_t instance)
{
    for (size_t i = 0; i < p->awaiting_pods.len; i++)
        if (p->awaiting_pods.at[i].instance == instance)
            return &p->awaiting_pods.at[i];
    return NULL;
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct claim_request *e = ctx;
    struct kube_provisioner *p = e->p;
    const char *trouble = answer->code ? answer->text : NULL;
    if (!trouble && e->looks) {
        trouble = volume_mark(e, answer);
        if (!trouble)
            return;
    }
    struct pod_claims *s = pod_claims_find(p, e->instance);
    claim_request_free(e);
    if (!s)
        return;
    s->under_way--;
    if (trouble && !s->trouble)
        s->trouble = mem_strdup(trouble);
    kube_provision_check(p);
}

/* Requests the claims of the pod that were not requested yet. `later`: another pod requested them and has gone; a node
 * it selected may stand, and the volume may still appear. */
static void pod_claims_request(struct kube_provisioner *p, struct pod_claims *s, bool later)
{
    struct cache_claim_volume claims[CLAIMS_MAX];
    struct cache_pod_view pod;
    size_t len = cache_claim_volumes(p->cache, s->instance, claims, CLAIMS_MAX);
    if (len > CLAIMS_MAX || !cache_pod_by_instance(p->cache, s->instance, &pod))
        return;
    for (size_t i = 0; i < len; i++) {
        if (claims[i].joined || s->asked >> i & 1 ||
            (later && !claims[i].volume[0] && cache_claim_is_selected(p->cache, &claims[i])))
            continue;
        struct claim_request *e = claim_request_new(p, s->instance, &claims[i]);
        s->asked |= UINT64_C(1) << i;
        s->under_way++;
        s->until_ns = loop_now_ns(p->loop) + PATIENCE_NS;
        if (claims[i].volume[0])
            volume_check(e);
        else
            claim_mark(e, pod.node);
    }
}

/* Sets the timer; the earliest time counts. */
static void timer_set_earlier(struct kube_provisioner *p, int64_t at_ns)
{
    if (at_ns >= p->timer_ns)
        return;
    p->timer_ns = at_ns;
    loop_timer_set(p->timer, at_ns);
}

/* If nothing was requested, the claims may be bound already, so the timer checks at once. */
bool kube_provision(struct kube_provisioner *p, uint64_t instance)
{
    size_t len = cache_claim_volumes(p->cache, instance, NULL, 0);
    if (len == 0)
        return false;
    struct pod_claims s = {.instance = instance, .until_ns = loop_now_ns(p->loop) + PATIENCE_NS};
    if (len > CLAIMS_MAX)
        s.trouble = mem_strdup("the pod has too many unbound claims");
    pod_claims_request(p, &s, false);
    vec_push(&p->awaiting_pods, s);
    timer_set_earlier(p, s.under_way ? s.until_ns : loop_now_ns(p->loop));
    return true;
}

void kube_provision_claim(struct kube_provisioner *p, const struct cache_claim_volume *claim, const char *node)
{
    claim_mark(claim_request_new(p, 0, claim), node); /* no callback */
}

/* Reports whether the pod is served or has failed. */
static bool is_finished(struct kube_provisioner *p, struct pod_claims *s)
{
    struct cache_pod_view pod;
    if (s->under_way > 0)
        return false;
    if (!cache_pod_by_instance(p->cache, s->instance, &pod))
        s->trouble = s->trouble ? s->trouble : mem_strdup("the pod was deleted");
    if (s->trouble || cache_volumes_are_bound(p->cache, s->instance))
        return true;
    if (loop_now_ns(p->loop) >= s->until_ns)
        s->trouble = mem_strdup("its volumes were not bound within ten minutes");
    return s->trouble;
}

void kube_provision_check(struct kube_provisioner *p)
{
    for (size_t i = 0; i < p->awaiting_pods.len;) {
        struct pod_claims s = p->awaiting_pods.at[i];
        if (!is_finished(p, &s)) {
            pod_claims_request(p, &p->awaiting_pods.at[i++], true);
            continue;
        }
        p->awaiting_pods.at[i] = p->awaiting_pods.at[--p->awaiting_pods.len];
        p->done(p->ctx, s.instance, s.trouble ? s.trouble : "");
        mem_free(s.trouble);
    }
}

static void on_timer(void *ctx)
{
    struct kube_provisioner *p = ctx;
    p->timer_ns = INT64_MAX;
    kube_provision_check(p);
    if (p->awaiting_pods.len)
        timer_set_earlier(p, loop_now_ns(p->loop) + PATIENCE_NS / 10);
}

struct kube_provisioner *kube_provisioner_new(struct loop *l, struct kube_api *api, struct cache *cache,
                                              kube_provisioned *done, void *ctx)
{
    struct kube_provisioner *p = mem_zalloc(sizeof *p);
    *p = (struct kube_provisioner){
        .api = api, .cache = cache, .loop = l, .timer_ns = INT64_MAX, .done = done, .ctx = ctx};
    p->timer = loop_timer_new(l, on_timer, p);
    return p;
}

void kube_provisioner_free(struct kube_provisioner *p)
{
    if (!p)
        return;
    while (p->first) {
        kube_cancel(p->first->call);
        claim_request_free(p->first);
    }
    for (size_t i = 0; i < p->awaiting_pods.len; i++)
        mem_free(p->awaiting_pods.at[i].trouble);
    vec_done(&p->awaiting_pods);
    loop_source_free(p->timer);
    mem_free(p);
}

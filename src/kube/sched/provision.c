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
struct serving {
    uint64_t instance;
    int64_t until_ns;
    size_t under_way; /* number of requests in progress */
    uint64_t asked;   /* bit set by claim index of project_volumes */
    char *trouble;    /* first failure; NULL: none */
};

/* A request in progress for one claim. */
struct errand {
    struct kube_provisioner *p;
    struct errand *prev, *next;
    struct kube_call *call;
    uint64_t instance;
    bool looks; /* the request reads the volume before reserving it */
    char *namespace, *claim, *uid, *volume;
};

struct kube_provisioner {
    struct kube_api *api;
    struct project *project;
    struct loop *loop;
    struct loop_source *timer;
    int64_t timer_ns; /* when the timer fires */
    kube_provisioned *done;
    void *ctx;
    VEC(struct serving) servings;
    struct errand *first;
};

static void on_answer(void *ctx, const struct kube_answer *answer);

/* ---- requests --------------------------------------------------------------------------------------------------- */

static struct errand *errand_new(struct kube_provisioner *p, uint64_t instance, const struct project_volume *v)
{
    struct errand *e = mem_zalloc(sizeof *e);
    *e = (struct errand){.p = p,
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

static void errand_free(struct errand *e)
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

static void errand_send(struct errand *e, const char *method, const char *path, const json_t *body)
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
static void claim_mark(struct errand *e, const char *node)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "/api/v1/namespaces/%s/persistentvolumeclaims/%s", e->namespace, e->claim);
    json_t *body = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", e->uid, "annotations",
                             "volume.kubernetes.io/selected-node", node);
    errand_send(e, "PATCH", path.at, body);
    json_decref(body);
}

static void volume_look(struct errand *e)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "/api/v1/persistentvolumes/%s", e->volume);
    e->looks = true;
    errand_send(e, "GET", path.at, NULL);
}

/* Reserves the volume for the claim, based on the version just read: the API server rejects a concurrent write. Returns
 * NULL if it is done already. */
static const char *volume_mark(struct errand *e, const struct kube_answer *answer)
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
        errand_send(e, "PATCH", path.at, body);
        json_decref(body);
    }
    json_decref(volume);
    return trouble;
}

/* ---- pods -------------------------------------------------------------------------------------------------------------- */

static struct serving *serving_find(struct kube_provisioner *p, uint64_t instance)
{
    for (size_t i = 0; i < p->servings.len; i++)
        if (p->servings.at[i].instance == instance)
            return &p->servings.at[i];
    return NULL;
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct errand *e = ctx;
    struct kube_provisioner *p = e->p;
    const char *trouble = answer->code ? answer->text : NULL;
    if (!trouble && e->looks) {
        trouble = volume_mark(e, answer);
        if (!trouble)
            return;
    }
    struct serving *s = serving_find(p, e->instance);
    errand_free(e);
    if (!s)
        return;
    s->under_way--;
    if (trouble && !s->trouble)
        s->trouble = mem_strdup(trouble);
    kube_provision_look(p);
}

/* Requests the claims of the pod that were not requested yet. `later`: another pod requested them and has gone; a node
 * it selected may stand, and the volume may still appear. */
static void serving_ask(struct kube_provisioner *p, struct serving *s, bool later)
{
    struct project_volume claims[CLAIMS_MAX];
    struct project_pod pod;
    size_t len = project_volumes(p->project, s->instance, claims, CLAIMS_MAX);
    if (len > CLAIMS_MAX || !project_pod_by_instance(p->project, s->instance, &pod))
        return;
    for (size_t i = 0; i < len; i++) {
        if (claims[i].joined || s->asked >> i & 1 ||
            (later && !claims[i].volume[0] && project_claim_selected(p->project, &claims[i])))
            continue;
        struct errand *e = errand_new(p, s->instance, &claims[i]);
        s->asked |= UINT64_C(1) << i;
        s->under_way++;
        s->until_ns = loop_now_ns(p->loop) + PATIENCE_NS;
        if (claims[i].volume[0])
            volume_look(e);
        else
            claim_mark(e, pod.node);
    }
}

/* Sets the timer; the earliest time counts. */
static void look_at(struct kube_provisioner *p, int64_t at_ns)
{
    if (at_ns >= p->timer_ns)
        return;
    p->timer_ns = at_ns;
    loop_timer_set(p->timer, at_ns);
}

/* If nothing was requested, the claims may be bound already, so the timer checks at once. */
bool kube_provision(struct kube_provisioner *p, uint64_t instance)
{
    size_t len = project_volumes(p->project, instance, NULL, 0);
    if (len == 0)
        return false;
    struct serving s = {.instance = instance, .until_ns = loop_now_ns(p->loop) + PATIENCE_NS};
    if (len > CLAIMS_MAX)
        s.trouble = mem_strdup("the pod has too many unbound claims");
    serving_ask(p, &s, false);
    vec_push(&p->servings, s);
    look_at(p, s.under_way ? s.until_ns : loop_now_ns(p->loop));
    return true;
}

void kube_provision_claim(struct kube_provisioner *p, const struct project_volume *claim, const char *node)
{
    claim_mark(errand_new(p, 0, claim), node); /* no callback */
}

/* Reports whether the pod is served or has failed. */
static bool is_over(struct kube_provisioner *p, struct serving *s)
{
    struct project_pod pod;
    if (s->under_way > 0)
        return false;
    if (!project_pod_by_instance(p->project, s->instance, &pod))
        s->trouble = s->trouble ? s->trouble : mem_strdup("the pod was deleted");
    if (s->trouble || project_volumes_bound(p->project, s->instance))
        return true;
    if (loop_now_ns(p->loop) >= s->until_ns)
        s->trouble = mem_strdup("its volumes were not bound within ten minutes");
    return s->trouble;
}

void kube_provision_look(struct kube_provisioner *p)
{
    for (size_t i = 0; i < p->servings.len;) {
        struct serving s = p->servings.at[i];
        if (!is_over(p, &s)) {
            serving_ask(p, &p->servings.at[i++], true);
            continue;
        }
        p->servings.at[i] = p->servings.at[--p->servings.len];
        p->done(p->ctx, s.instance, s.trouble ? s.trouble : "");
        mem_free(s.trouble);
    }
}

static void on_timer(void *ctx)
{
    struct kube_provisioner *p = ctx;
    p->timer_ns = INT64_MAX;
    kube_provision_look(p);
    if (p->servings.len)
        look_at(p, loop_now_ns(p->loop) + PATIENCE_NS / 10);
}

struct kube_provisioner *kube_provisioner_new(struct loop *l, struct kube_api *api, struct project *project,
                                              kube_provisioned *done, void *ctx)
{
    struct kube_provisioner *p = mem_zalloc(sizeof *p);
    *p = (struct kube_provisioner){
        .api = api, .project = project, .loop = l, .timer_ns = INT64_MAX, .done = done, .ctx = ctx};
    p->timer = loop_timer_new(l, on_timer, p);
    return p;
}

void kube_provisioner_free(struct kube_provisioner *p)
{
    if (!p)
        return;
    while (p->first) {
        kube_cancel(p->first->call);
        errand_free(p->first);
    }
    for (size_t i = 0; i < p->servings.len; i++)
        mem_free(p->servings.at[i].trouble);
    vec_done(&p->servings);
    loop_source_free(p->timer);
    mem_free(p);
}

#include "kube/sched/write.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/client/proto.h"

enum write_kind { WRITE_BIND, WRITE_LOOKUP, WRITE_CONDITION, WRITE_DELETE, WRITE_PATCH };

/* One request, or one step of an operation that takes several. */
struct kube_write {
    struct kube_writer *w;
    struct kube_write *prev, *next; /* list of requests in progress */
    struct kube_call *call;
    enum write_kind kind;
    uint64_t ticket;
    const char *namespace, *name, *uid, *node; /* in `texts` */
    char texts[];
};

struct kube_writer {
    struct kube_api *api;
    kube_written *written;
    void *ctx;
    struct kube_write *first;
    struct kube_writer_stats stats;
    struct str path, body; /* buffers for the next request */
};

static void on_answer(void *ctx, const struct kube_answer *answer);

static struct kube_write *write_new(struct kube_writer *w, enum write_kind kind, const struct kube_pod_ref *pod,
                                    const char *node, uint64_t ticket)
{
    const char *const from[] = {pod->namespace, pod->name, pod->uid, node};
    size_t len[4], all = 0;
    for (size_t i = 0; i < 4; i++) {
        len[i] = strlen(from[i]) + 1;
        all += len[i];
    }
    struct kube_write *x = mem_alloc(sizeof *x + all);
    *x = (struct kube_write){.w = w, .next = w->first, .kind = kind, .ticket = ticket};
    const char **const to[] = {&x->namespace, &x->name, &x->uid, &x->node};
    char *at = x->texts;
    for (size_t i = 0; i < 4; at += len[i++])
        *to[i] = memcpy(at, from[i], len[i]);
    if (w->first)
        w->first->prev = x;
    w->first = x;
    w->stats.under_way += kind == WRITE_BIND;
    return x;
}

static void write_free(struct kube_write *x)
{
    struct kube_writer *w = x->w;
    if (x->prev)
        x->prev->next = x->next;
    else
        w->first = x->next;
    if (x->next)
        x->next->prev = x->prev;
    w->stats.under_way -= x->kind == WRITE_BIND || x->kind == WRITE_LOOKUP;
    mem_free(x);
}

struct kube_writer *kube_writer_new(struct kube_api *api, kube_written *written, void *ctx)
{
    struct kube_writer *w = mem_zalloc(sizeof *w);
    w->api = api;
    w->written = written;
    w->ctx = ctx;
    return w;
}

void kube_writer_free(struct kube_writer *w)
{
    if (!w)
        return;
    while (w->first) {
        kube_cancel(w->first->call);
        write_free(w->first);
    }
    str_done(&w->path);
    str_done(&w->body);
    mem_free(w);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void send(struct kube_write *x, const char *method, const char *sub, enum kube_rank rank)
{
    struct kube_writer *w = x->w;
    str_clear(&w->path);
    str_addf(&w->path, "/api/v1/namespaces/%s/pods/%s%s", x->namespace, x->name, sub);
    const bool patches = strcmp(method, "PATCH") == 0, binary = x->kind == WRITE_BIND || x->kind == WRITE_LOOKUP;
    x->call = kube_start(w->api, &(struct kube_request){.method = method,
                                                        .path = w->path.at,
                                                        .format = binary ? KUBE_PROTOBUF : KUBE_JSON,
                                                        .patch = patches ? KUBE_STRATEGIC_PATCH : NULL,
                                                        .body = str_text(&w->body),
                                                        .body_len = w->body.len,
                                                        .rank = rank,
                                                        .harmless = true,
                                                        .done = on_answer,
                                                        .ctx = x});
}

static struct str *body_begin(struct kube_writer *w)
{
    str_clear(&w->body);
    return &w->body;
}

static void add_pair(struct str *to, const char *key, const char *value)
{
    str_addf(to, "\"%s\":", key);
    str_add_json(to, value);
}

/* Encoded as protobuf with only the fields that kube-scheduler sends: the API server parses each field several
 * times. */
void kube_bind(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node, uint64_t ticket)
{
    enum { BINDING_META = 1, META_NAME = 1, META_UID = 5, BINDING_TARGET = 2, TARGET_KIND = 1, TARGET_NAME = 3 };
    struct kube_write *x = write_new(w, WRITE_BIND, pod, node, ticket);
    struct str *body = body_begin(w);
    size_t object = proto_object_begin(body, "v1", "Binding"), meta = proto_begin(body, BINDING_META);
    proto_add_text(body, META_NAME, pod->name);
    proto_add_text(body, META_UID, pod->uid);
    proto_end(body, meta);
    size_t target = proto_begin(body, BINDING_TARGET);
    proto_add_text(body, TARGET_KIND, "Node");
    proto_add_text(body, TARGET_NAME, node);
    proto_end(body, target);
    proto_object_end(body, object);
    send(x, "POST", "/binding", KUBE_USUAL);
}

/* Begins a patch with the pod's uid as a precondition: the API server rejects it for any other pod. */
static struct str *patch_begin(struct kube_writer *w, const struct kube_pod_ref *pod)
{
    struct str *body = body_begin(w);
    str_add(body, "{\"metadata\":{");
    add_pair(body, "uid", pod->uid);
    str_add(body, "},\"status\":{");
    return body;
}

static void add_condition(struct str *to, const char *type, const char *status, const char *reason, const char *text)
{
    char moment[TIMESTAMP_MAX];
    str_add(to, "\"conditions\":[{");
    add_pair(to, "type", type);
    str_add_char(to, ',');
    add_pair(to, "status", status);
    str_add_char(to, ',');
    add_pair(to, "reason", reason);
    str_add_char(to, ',');
    add_pair(to, "message", text);
    str_add_char(to, ',');
    add_pair(to, "lastTransitionTime", timestamp_text(kube_wall_ns() / 1000000000 * 1000000000, moment));
    str_add(to, "}]");
}

void kube_preempt_pod(struct kube_writer *w, const struct kube_pod_ref *pod, const char *why, uint64_t ticket)
{
    struct kube_write *x = write_new(w, WRITE_CONDITION, pod, "", ticket);
    struct str *body = patch_begin(w, pod);
    add_condition(body, "DisruptionTarget", "True", "PreemptionByScheduler", why);
    str_add(body, "}}");
    send(x, "PATCH", "/status", KUBE_USUAL);
}

static void delete (struct kube_write *x)
{
    struct str *body = body_begin(x->w);
    x->kind = WRITE_DELETE;
    str_add(body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{");
    add_pair(body, "uid", x->uid);
    str_add(body, "}}");
    send(x, "DELETE", "", KUBE_USUAL);
}

void kube_nominate(struct kube_writer *w, const struct kube_pod_ref *pod, const char *node)
{
    struct kube_write *x = write_new(w, WRITE_PATCH, pod, "", 0);
    struct str *body = patch_begin(w, pod);
    if (node[0])
        add_pair(body, "nominatedNodeName", node);
    else
        str_add(body, "\"nominatedNodeName\":null");
    str_add(body, "}}");
    send(x, "PATCH", "/status", KUBE_USUAL);
}

void kube_mark_unschedulable(struct kube_writer *w, const struct kube_pod_ref *pod, const char *reason,
                             const char *text)
{
    struct kube_write *x = write_new(w, WRITE_PATCH, pod, "", 0);
    struct str *body = patch_begin(w, pod);
    add_condition(body, "PodScheduled", "False", reason, text);
    str_add(body, "}}");
    send(x, "PATCH", "/status", KUBE_LATE);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static void report_result(struct kube_write *x, enum kube_write_result fate, const char *text)
{
    struct kube_writer *w = x->w;
    uint64_t ticket = x->ticket;
    bool binds = x->kind == WRITE_BIND || x->kind == WRITE_LOOKUP;
    w->stats.bound += binds && fate == KUBE_DONE;
    w->stats.failed += binds && fate != KUBE_DONE;
    write_free(x);
    w->written(w->ctx, ticket, fate, text);
}

static void lookup_binding(struct kube_write *x);

static struct proto_text node_of(struct proto_reader pod)
{
    enum { POD_SPEC = 2, SPEC_NODE = 10 };
    struct proto_field f, g;
    struct proto_text node = {0};
    while (proto_next(&pod, &f)) {
        if (f.number != POD_SPEC)
            continue;
        struct proto_reader spec = proto_sub(&f);
        while (proto_next(&spec, &g))
            if (g.number == SPEC_NODE)
                node = proto_text(&g);
    }
    return node;
}

/* Decides the outcome of a binding from the pod as read. If the read fails temporarily, it is repeated. */
static void lookup_finish(struct kube_write *x, const struct kube_answer *answer)
{
    struct proto_object object;
    struct proto_meta meta;
    if (answer->code == -EIO || answer->code == -EAGAIN || answer->code == -ECONNREFUSED) {
        lookup_binding(x);
        return;
    }
    if (answer->code) {
        report_result(x, answer->code == -ENOENT ? KUBE_GONE : KUBE_FAILED, answer->text);
        return;
    }
    if (!proto_object_read(answer->body, answer->len, &object) || !proto_meta_read(object.raw, &meta)) {
        report_result(x, KUBE_FAILED, "the pod cannot be read");
        return;
    }
    struct proto_text node = node_of(object.raw);
    if (!proto_is(meta.uid, x->uid))
        report_result(x, KUBE_GONE, "another pod now has this name");
    else if (proto_is(node, x->node))
        report_result(x, KUBE_DONE, "");
    else if (node.len)
        report_result(x, KUBE_TAKEN, "the pod is bound to another node");
    else
        report_result(x, KUBE_FAILED, "the binding was refused");
}

static void lookup_binding(struct kube_write *x)
{
    x->kind = WRITE_LOOKUP;
    x->w->stats.looked_up++;
    str_clear(&x->w->body);
    send(x, "GET", "", KUBE_URGENT);
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct kube_write *x = ctx;
    x->call = NULL;
    switch (x->kind) {
    case WRITE_BIND:
        if (answer->code == 0)
            report_result(x, KUBE_DONE, "");
        else if (answer->code == -ENOENT || answer->code == -EINVAL || answer->code == -EACCES)
            report_result(x, answer->code == -ENOENT ? KUBE_GONE : KUBE_FAILED, answer->text);
        else
            lookup_binding(x); /* of several tries an earlier one may have succeeded */
        return;
    case WRITE_LOOKUP: lookup_finish(x, answer); return;
    case WRITE_CONDITION:
        if (answer->code == -ENOENT)
            report_result(x, KUBE_GONE, answer->text);
        else
            delete (x); /* the condition is informational; delete without it */
        return;
    case WRITE_DELETE:
        /* -EBUSY: another pod has the name now. */
        report_result(x,
                      answer->code == 0                                   ? KUBE_DONE
                      : answer->code == -ENOENT || answer->code == -EBUSY ? KUBE_GONE
                                                                          : KUBE_FAILED,
                      answer->text);
        return;
    case WRITE_PATCH: write_free(x); return;
    }
    assert(false);
}

struct kube_writer_stats kube_writer_stats(const struct kube_writer *w)
{
    return w->stats;
}

#include "kube/job/job_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/cache/cache.h"

enum deed { DEED_TRY, DEED_MAKE, DEED_LOOK, DEED_REMOVE, DEED_SERVE, DEED_TELL, DEED_DELETE };

struct errand {
    struct kube_job_writer *w;
    struct errand *prev, *next;
    struct kube_call *call;
    enum deed deed;
    uint64_t ticket;
    kube_job_done *done;
    bool late;
    char *namespace, *job, *job_uid, *pod;
    json_t *made; /* for created pods: labels and node, to recognise the pod */
};

struct kube_job_writer {
    struct kube_api *api;
    void *ctx;
    struct errand *first;
    struct str path;
};

static void on_answer(void *ctx, const struct kube_answer *answer);

struct kube_job_writer *kube_job_writer_new(struct kube_api *api, void *ctx)
{
    struct kube_job_writer *w = mem_zalloc(sizeof *w);
    w->api = api;
    w->ctx = ctx;
    return w;
}

static void errand_free(struct errand *e)
{
    *(e->prev ? &e->prev->next : &e->w->first) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    mem_free(e->namespace);
    mem_free(e->job);
    mem_free(e->job_uid);
    mem_free(e->pod);
    json_decref(e->made);
    mem_free(e);
}

void kube_job_writer_free(struct kube_job_writer *w)
{
    if (!w)
        return;
    while (w->first) {
        kube_cancel(w->first->call);
        errand_free(w->first);
    }
    str_done(&w->path);
    mem_free(w);
}

static struct errand *errand_new(struct kube_job_writer *w, const struct kube_job_ref *job, enum deed deed,
                                 uint64_t ticket, kube_job_done *done)
{
    struct errand *e = mem_zalloc(sizeof *e);
    *e = (struct errand){.w = w,
                         .next = w->first,
                         .deed = deed,
                         .ticket = ticket,
                         .done = done,
                         .namespace = mem_strdup(job->namespace),
                         .job = mem_strdup(job->name),
                         .job_uid = mem_strdup(job->uid)};
    if (w->first)
        w->first->prev = e;
    w->first = e;
    return e;
}

/* Sends to the path in the writer's buffer. */
static void send(struct errand *e, const char *method, const json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    bool tries = e->deed == DEED_TRY;
    e->call = kube_start(e->w->api, &(struct kube_request){.method = method,
                                                           .path = e->w->path.at,
                                                           .format = tries ? KUBE_PROTOBUF : KUBE_JSON,
                                                           .json_body = tries,
                                                           .patch = e->deed == DEED_TELL ? KUBE_MERGE_PATCH : NULL,
                                                           .body = text,
                                                           .body_len = text ? strlen(text) : 0,
                                                           .rank = e->late ? KUBE_LATE : KUBE_USUAL,
                                                           .harmless = true,
                                                           .done = on_answer,
                                                           .ctx = e});
    free(text);
}

static void path_make(struct errand *e, const char *fmt, const char *name)
{
    struct str *path = &e->w->path;
    str_clear(path);
    str_addf(path, fmt, e->namespace);
    str_add(path, name);
}

#define PODS "/api/v1/namespaces/%s/pods"
#define SERVICES "/api/v1/namespaces/%s/services"
#define JOBS "/apis/berth.dev/v1/namespaces/%s/jobs/"

void kube_job_try(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                  kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_TRY, ticket, done);
    path_make(e, PODS, "?dryRun=All");
    send(e, "POST", pod);
}

static const char *text_in(const json_t *object, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, part), key));
    return text ? text : "";
}

void kube_job_make(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                   kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_MAKE, ticket, done);
    e->pod = mem_strdup(text_in(pod, "metadata", "name"));
    e->made = json_pack("{s:{s:O},s:{s:s}}", "metadata", "labels",
                        json_object_get(json_object_get(pod, "metadata"), "labels"), "spec", "nodeName",
                        text_in(pod, "spec", "nodeName"));
    path_make(e, PODS, "");
    send(e, "POST", pod);
}

static json_t *delete_options(const char *uid)
{
    return json_pack("{s:s,s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions", "propagationPolicy",
                     "Background", "preconditions", "uid", uid);
}

void kube_job_remove(struct kube_job_writer *w, const struct kube_job_ref *job, const char *pod, const char *uid,
                     uint64_t ticket, kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_REMOVE, ticket, done);
    json_t *body = delete_options(uid);
    e->pod = mem_strdup(pod);
    path_make(e, PODS "/", pod);
    send(e, "DELETE", body);
    json_decref(body);
}

void kube_job_serve(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *service,
                    kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_SERVE, 0, done);
    path_make(e, SERVICES, "");
    send(e, "POST", service);
}

void kube_job_tell(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *status, bool late,
                   kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_TELL, 0, done);
    e->late = late;
    json_t *body = json_pack("{s:{s:s},s:O}", "metadata", "uid", job->uid, "status", status);
    path_make(e, JOBS, job->name);
    str_add(&w->path, "/status");
    send(e, "PATCH", body);
    json_decref(body);
}

void kube_job_delete(struct kube_job_writer *w, const struct kube_job_ref *job, kube_job_done *done)
{
    struct errand *e = errand_new(w, job, DEED_DELETE, 0, done);
    json_t *body = delete_options(job->uid);
    path_make(e, JOBS, job->name);
    send(e, "DELETE", body);
    json_decref(body);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------ */

static void tell(struct errand *e, enum kube_fate fate, const char *text, const char *uid,
                 const struct kube_answer *answer)
{
    const struct kube_job_answer told = {
        .job = {e->namespace, e->job, e->job_uid},
        .ticket = e->ticket,
        .fate = fate,
        .text = text,
        .uid = uid,
        .name = e->pod ? e->pod : "",
        .body = answer->body,
        .body_len = answer->len
    };
    e->done(e->w->ctx, &told);
    errand_free(e);
}

/* Reports whether the pod is the one we tried to create: equal labels and owner identify it. */
static bool is_ours(const struct errand *e, const json_t *pod)
{
    static const char *const keys[] = {PROJECT_JOB_LABEL, PROJECT_ROLE_LABEL, PROJECT_INDEX_LABEL,
                                       PROJECT_ATTEMPT_LABEL};
    const json_t *meta = json_object_get(pod, "metadata"), *sent = json_object_get(e->made, "metadata");
    const json_t *owner = json_array_get(json_object_get(meta, "ownerReferences"), 0);
    const char *uid = json_string_value(json_object_get(owner, "uid"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(text_in(meta, "labels", keys[i]), text_in(sent, "labels", keys[i])) != 0)
            return false;
    return uid && strcmp(uid, e->job_uid) == 0;
}

static void look(struct errand *e)
{
    e->deed = DEED_LOOK;
    path_make(e, PODS "/", e->pod);
    send(e, "GET", NULL);
}

static void look_at(struct errand *e, const struct kube_answer *answer)
{
    if (answer->code == -EIO || answer->code == -EAGAIN || answer->code == -ECONNREFUSED) {
        look(e); /* outcome still unknown */
        return;
    }
    if (answer->code) {
        tell(e, KUBE_FAILED, answer->text, "", answer);
        return;
    }
    json_t *pod = json_loadb(answer->body, answer->len, 0, NULL);
    const char *uid = text_in(pod, "metadata", "uid");
    if (!is_ours(e, pod))
        tell(e, KUBE_FAILED, "another pod has this name", "", answer);
    else if (*text_in(pod, "metadata", "deletionTimestamp"))
        tell(e, KUBE_FAILED, "a pod with this name is still being deleted", "", answer);
    else if (strcmp(text_in(pod, "spec", "nodeName"), text_in(e->made, "spec", "nodeName")) != 0)
        tell(e, KUBE_TAKEN, "the pod already exists on another node", uid, answer);
    else
        tell(e, KUBE_DONE, "", uid, answer);
    json_decref(pod);
}

static void made(struct errand *e, const struct kube_answer *answer)
{
    if (answer->code == 0) {
        json_t *pod = json_loadb(answer->body, answer->len, 0, NULL);
        tell(e, KUBE_DONE, "", text_in(pod, "metadata", "uid"), answer);
        json_decref(pod);
    } else if (answer->code == -EINVAL || answer->code == -EACCES || answer->code == -ENOENT) {
        tell(e, KUBE_FAILED, answer->text, "", answer);
    } else {
        look(e); /* of several tries an earlier one may have succeeded */
    }
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct errand *e = ctx;
    bool there = e->deed == DEED_SERVE && answer->code == -EEXIST;
    e->call = NULL;
    if (e->deed == DEED_MAKE)
        made(e, answer);
    else if (e->deed == DEED_LOOK)
        look_at(e, answer);
    else if (answer->code == 0 || there)
        tell(e, KUBE_DONE, "", "", answer);
    else /* -EBUSY: of a deletion or a status write, the uid belongs to another object now */
        tell(e, answer->code == -ENOENT || (answer->code == -EBUSY && e->deed != DEED_TRY) ? KUBE_GONE : KUBE_FAILED,
             answer->text, "", answer);
}

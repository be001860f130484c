#include "kube/job/job_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/cache/cache.h"

enum request_kind {
    REQUEST_DRY_RUN,
    REQUEST_CREATE_POD,
    REQUEST_LOOKUP,
    REQUEST_DELETE_POD,
    REQUEST_SERVICE,
    REQUEST_STATUS,
    REQUEST_DELETE_JOB
};

struct job_request {
    struct kube_job_writer *w;
    struct job_request *prev, *next;
    struct kube_call *call;
    enum request_kind request_kind;
    uint64_t ticket;
    kube_job_done *done;
    bool late;
    char *namespace, *job, *job_uid, *pod;
    json_t *made; /* for created pods: labels and node, to recognise the pod */
};

struct kube_job_writer {
    struct kube_api *api;
    void *ctx;
    struct job_request *first;
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

static void job_request_free(struct job_request *e)
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
        job_request_free(w->first);
    }
    str_done(&w->path);
    mem_free(w);
}

static struct job_request *job_request_new(struct kube_job_writer *w, const struct kube_job_ref *job,
                                           enum request_kind request_kind, uint64_t ticket, kube_job_done *done)
{
    struct job_request *e = mem_zalloc(sizeof *e);
    *e = (struct job_request){.w = w,
                              .next = w->first,
                              .request_kind = request_kind,
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
static void send(struct job_request *e, const char *method, const json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    bool tries = e->request_kind == REQUEST_DRY_RUN;
    e->call = kube_start(e->w->api,
                         &(struct kube_request){.method = method,
                                                .path = e->w->path.at,
                                                .format = tries ? KUBE_PROTOBUF : KUBE_JSON,
                                                .json_body = tries,
                                                .patch = e->request_kind == REQUEST_STATUS ? KUBE_MERGE_PATCH : NULL,
                                                .body = text,
                                                .body_len = text ? strlen(text) : 0,
                                                .rank = e->late ? KUBE_LATE : KUBE_USUAL,
                                                .harmless = true,
                                                .done = on_answer,
                                                .ctx = e});
    free(text);
}

static void path_make(struct job_request *e, const char *fmt, const char *name)
{
    struct str *path = &e->w->path;
    str_clear(path);
    str_addf(path, fmt, e->namespace);
    str_add(path, name);
}

#define PODS "/api/v1/namespaces/%s/pods"
#define SERVICES "/api/v1/namespaces/%s/services"
#define JOBS "/apis/berth.dev/v1/namespaces/%s/jobs/"

void kube_job_dry_run(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                      kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_DRY_RUN, ticket, done);
    path_make(e, PODS, "?dryRun=All");
    send(e, "POST", pod);
}

static const char *text_in(const json_t *object, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, part), key));
    return text ? text : "";
}

void kube_job_create_pod(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *pod, uint64_t ticket,
                         kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_CREATE_POD, ticket, done);
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

void kube_job_delete_pod(struct kube_job_writer *w, const struct kube_job_ref *job, const char *pod, const char *uid,
                         uint64_t ticket, kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_DELETE_POD, ticket, done);
    json_t *body = delete_options(uid);
    e->pod = mem_strdup(pod);
    path_make(e, PODS "/", pod);
    send(e, "DELETE", body);
    json_decref(body);
}

void kube_job_create_service(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *service,
                             kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_SERVICE, 0, done);
    path_make(e, SERVICES, "");
    send(e, "POST", service);
}

void kube_job_write_status(struct kube_job_writer *w, const struct kube_job_ref *job, const json_t *status, bool late,
                           kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_STATUS, 0, done);
    e->late = late;
    json_t *body = json_pack("{s:{s:s},s:O}", "metadata", "uid", job->uid, "status", status);
    path_make(e, JOBS, job->name);
    str_add(&w->path, "/status");
    send(e, "PATCH", body);
    json_decref(body);
}

void kube_job_delete(struct kube_job_writer *w, const struct kube_job_ref *job, kube_job_done *done)
{
    struct job_request *e = job_request_new(w, job, REQUEST_DELETE_JOB, 0, done);
    json_t *body = delete_options(job->uid);
    path_make(e, JOBS, job->name);
    send(e, "DELETE", body);
    json_decref(body);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static void report_result(struct job_request *e, enum kube_write_result fate, const char *text, const char *uid,
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
    job_request_free(e);
}

/* Reports whether the pod is the one we tried to create: equal labels and owner identify it. */
static bool is_ours(const struct job_request *e, const json_t *pod)
{
    static const char *const keys[] = {KUBE_JOB_LABEL, KUBE_ROLE_LABEL, KUBE_INDEX_LABEL, KUBE_ATTEMPT_LABEL};
    const json_t *meta = json_object_get(pod, "metadata"), *sent = json_object_get(e->made, "metadata");
    const json_t *owner = json_array_get(json_object_get(meta, "ownerReferences"), 0);
    const char *uid = json_string_value(json_object_get(owner, "uid"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(text_in(meta, "labels", keys[i]), text_in(sent, "labels", keys[i])) != 0)
            return false;
    return uid && strcmp(uid, e->job_uid) == 0;
}

static void lookup_pod(struct job_request *e)
{
    e->request_kind = REQUEST_LOOKUP;
    path_make(e, PODS "/", e->pod);
    send(e, "GET", NULL);
}

static void lookup_finish(struct job_request *e, const struct kube_answer *answer)
{
    if (answer->code == -EIO || answer->code == -EAGAIN || answer->code == -ECONNREFUSED) {
        lookup_pod(e); /* outcome still unknown */
        return;
    }
    if (answer->code) {
        report_result(e, KUBE_FAILED, answer->text, "", answer);
        return;
    }
    json_t *pod = json_loadb(answer->body, answer->len, 0, NULL);
    const char *uid = text_in(pod, "metadata", "uid");
    if (!is_ours(e, pod))
        report_result(e, KUBE_FAILED, "another pod has this name", "", answer);
    else if (*text_in(pod, "metadata", "deletionTimestamp"))
        report_result(e, KUBE_FAILED, "a pod with this name is still being deleted", "", answer);
    else if (strcmp(text_in(pod, "spec", "nodeName"), text_in(e->made, "spec", "nodeName")) != 0)
        report_result(e, KUBE_TAKEN, "the pod already exists on another node", uid, answer);
    else
        report_result(e, KUBE_DONE, "", uid, answer);
    json_decref(pod);
}

static void made(struct job_request *e, const struct kube_answer *answer)
{
    if (answer->code == 0) {
        json_t *pod = json_loadb(answer->body, answer->len, 0, NULL);
        report_result(e, KUBE_DONE, "", text_in(pod, "metadata", "uid"), answer);
        json_decref(pod);
    } else if (answer->code == -EINVAL || answer->code == -EACCES || answer->code == -ENOENT) {
        report_result(e, KUBE_FAILED, answer->text, "", answer);
    } else {
        lookup_pod(e); /* of several tries an earlier one may have succeeded */
    }
}

static void on_answer(void *ctx, const struct kube_answer *answer)
{
    struct job_request *e = ctx;
    bool there = e->request_kind == REQUEST_SERVICE && answer->code == -EEXIST;
    e->call = NULL;
    if (e->request_kind == REQUEST_CREATE_POD)
        made(e, answer);
    else if (e->request_kind == REQUEST_LOOKUP)
        lookup_finish(e, answer);
    else if (answer->code == 0 || there)
        report_result(e, KUBE_DONE, "", "", answer);
    else /* -EBUSY: of a deletion or a status write, the uid belongs to another object now */
        report_result(e,
                      answer->code == -ENOENT || (answer->code == -EBUSY && e->request_kind != REQUEST_DRY_RUN)
                          ? KUBE_GONE
                          : KUBE_FAILED,
                      answer->text, "", answer);
}

/* lease.c - reads, takes and renews the lease: one request at a time, each based on the version that the last one has
 * seen.
 */
#include "kube/client/lease.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "wire/text/document.h"

enum { DURATION_S = 15 };
#define SECOND_NS INT64_C(1000000000)
#define DEADLINE_NS (10 * SECOND_NS)
#define RETRY_NS (2 * SECOND_NS)
#define RELEASE_NS_MAX (5 * SECOND_NS)

struct kube_lease {
    struct kube_lease_config config;
    char *identity, *path, *all_path, *namespace, *name;
    json_t *doc;        /* as last seen; NULL: not read yet, or missing */
    char *seen_version; /* version written by the holder's last renewal */
    int64_t seen_ns;    /* when that version was first seen */
    bool leads;
    int64_t until_ns; /* end of our lead unless renewed */
    int64_t asked_ns; /* when the request in progress was sent */
    struct kube_call *call;
    struct loop_source *look, *expiry, *release_timeout;
    bool releasing;
    void (*released)(void *ctx);
    void *released_ctx;
};

static void send_lease_get(struct kube_lease *l);
static void send_lease_update(struct kube_lease *l);

static int64_t wall_ns(const struct kube_lease *l)
{
    return l->config.wall_ns ? l->config.wall_ns(l->config.ctx) : kube_wall_ns();
}

/* ---- the lease as seen ------------------------------------------------------------------------------------------ */

static const char *text_at(const json_t *in, const char *key)
{
    const char *text = json_string_value(json_object_get(in, key));
    return text ? text : "";
}

const char *kube_lease_holder(const struct kube_lease *l)
{
    return text_at(json_object_get(l->doc, "spec"), "holderIdentity");
}

static bool is_ours(const struct kube_lease *l)
{
    return strcmp(kube_lease_holder(l), l->identity) == 0;
}

/* Reports whether the lease has not changed for its duration. */
static bool is_expired(const struct kube_lease *l)
{
    json_int_t s = json_integer_value(json_object_get(json_object_get(l->doc, "spec"), "leaseDurationSeconds"));
    s = s > 0 && s < 86400 ? s : l->config.duration_s;
    return loop_now_ns(l->config.loop) - l->seen_ns > (int64_t)s * SECOND_NS;
}

static void take_doc(struct kube_lease *l, json_t *doc)
{
    const char *version = text_at(json_object_get(doc, "metadata"), "resourceVersion");
    if (!l->seen_version || strcmp(l->seen_version, version) != 0) {
        mem_free(l->seen_version);
        l->seen_version = mem_strdup(version);
        l->seen_ns = loop_now_ns(l->config.loop);
    }
    json_decref(l->doc);
    l->doc = doc;
}

static void log_trouble(struct kube_lease *l, const char *text)
{
    if (l->config.trouble)
        l->config.trouble(l->config.ctx, text);
}

/* ---- leading ---------------------------------------------------------------------------------------------------- */

static void lead_end(struct kube_lease *l)
{
    if (!l->leads)
        return;
    l->leads = false;
    loop_timer_set(l->expiry, INT64_MAX);
    l->config.ended(l->config.ctx);
}

static void on_expiry(void *ctx)
{
    struct kube_lease *l = ctx;
    log_trouble(l, "failed to renew the lease before the renew deadline");
    lead_end(l);
}

static void lead_extend(struct kube_lease *l)
{
    if (l->leads && kube_clock_ns() >= l->until_ns)
        lead_end(l); /* there was a gap in the lead: end it, so that users of it start anew */
    l->until_ns = l->asked_ns + l->config.deadline_ns;
    if (kube_clock_ns() >= l->until_ns)
        return; /* the answer took too long to count; the next one may not */
    loop_timer_set(l->expiry, l->until_ns);
    if (l->leads)
        return;
    l->leads = true;
    l->config.began(l->config.ctx);
}

bool kube_lease_leads(const struct kube_lease *l)
{
    return l->leads && kube_clock_ns() < l->until_ns;
}

static void released(struct kube_lease *l)
{
    void (*tell)(void *ctx) = l->released;
    l->released = NULL;
    loop_timer_set(l->release_timeout, INT64_MAX);
    if (tell)
        tell(l->released_ctx);
}

static void on_release_timeout(void *ctx)
{
    released(ctx);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void lease_send(struct kube_lease *l, const char *method, const char *path, const char *body,
                       void (*done)(void *ctx, const struct kube_answer *a))
{
    const struct kube_request request = {
        .method = method,
        .path = path,
        .format = KUBE_JSON,
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .rank = KUBE_URGENT,
        .tries_max = 1,
        .timeout_ns = l->config.deadline_ns / 2, /* a request that hangs leaves time for another before the deadline */
        .done = done,
        .ctx = l,
    };
    assert(!l->call);
    l->asked_ns = kube_clock_ns();
    l->call = kube_start(l->config.api, &request);
}

/* Schedules the next request: a retry period after the last one was sent, or at once if its answer took longer. */
static void schedule_next_request(struct kube_lease *l)
{
    int64_t now_ns = loop_now_ns(l->config.loop), next_ns = l->asked_ns + l->config.retry_ns;
    l->call = NULL;
    loop_timer_set(l->look, next_ns > now_ns ? next_ns : now_ns);
}

/* Acts on a lease just read: waits for its holder, or takes it. */
static void act_on_lease(struct kube_lease *l)
{
    bool ours = is_ours(l);
    if (!ours)
        lead_end(l);
    if (l->releasing && !ours)
        released(l);
    else if (ours || (!l->releasing && (!kube_lease_holder(l)[0] || is_expired(l))))
        send_lease_update(l);
}

static json_t *answer_doc(struct kube_lease *l, const struct kube_answer *a)
{
    json_t *doc = NULL;
    struct berth_err err;
    if (a->code < 0)
        log_trouble(l, a->text);
    else if (document_parse(a->body, a->len, "the lease", &doc, &err) < 0)
        log_trouble(l, err.text);
    return doc;
}

static void on_read(void *ctx, const struct kube_answer *a)
{
    struct kube_lease *l = ctx;
    schedule_next_request(l);
    if (a->code == -ENOENT) {
        json_decref(l->doc);
        l->doc = NULL;
        lead_end(l);
        if (l->releasing)
            released(l);
        else
            send_lease_update(l);
        return;
    }
    json_t *doc = answer_doc(l, a);
    if (doc) {
        take_doc(l, doc);
        act_on_lease(l);
    } else if (l->releasing) {
        released(l);
    }
}

static void on_write(void *ctx, const struct kube_answer *a)
{
    struct kube_lease *l = ctx;
    schedule_next_request(l);
    if (a->code == -EBUSY || a->code == -EEXIST || (a->code == -ENOENT && l->doc)) {
        send_lease_get(l); /* a conflict with another instance, or with our own write whose answer was lost */
        return;
    }
    json_t *doc = answer_doc(l, a);
    if (doc) {
        take_doc(l, doc);
        if (is_ours(l) && !l->releasing)
            lead_extend(l);
    }
    if (l->releasing && doc && is_ours(l))
        send_lease_update(l); /* the answer was that of an earlier renewal */
    else if (l->releasing)
        released(l);
}

static void send_lease_get(struct kube_lease *l)
{
    lease_send(l, "GET", l->path, NULL, on_read);
}

/* Sets the spec: held by us, or released. */
static void set_spec(const struct kube_lease *l, json_t *spec, bool ours)
{
    char now[TIMESTAMP_MAX];
    json_int_t changes = json_integer_value(json_object_get(spec, "leaseTransitions"));
    (void)kube_micro_time(wall_ns(l), now);
    if (!l->releasing && !ours) {
        (void)json_object_set_new(spec, "acquireTime", json_string(now));
        (void)json_object_set_new(spec, "leaseTransitions", json_integer(l->doc ? changes + 1 : 0));
    }
    (void)json_object_set_new(spec, "holderIdentity", json_string(l->releasing ? "" : l->identity));
    (void)json_object_set_new(spec, "leaseDurationSeconds", json_integer(l->releasing ? 1 : l->config.duration_s));
    (void)json_object_set_new(spec, "renewTime", json_string(now));
}

static void send_lease_update(struct kube_lease *l)
{
    CLEANUP(json)
    json_t *doc = l->doc ? json_deep_copy(l->doc)
                         : json_pack("{s:s, s:s, s:{s:s, s:s}, s:{}}", "apiVersion", "coordination.k8s.io/v1", "kind",
                                     "Lease", "metadata", "namespace", l->namespace, "name", l->name, "spec");
    json_t *spec = json_object_get(doc, "spec");
    if (!spec) {
        spec = json_object();
        (void)json_object_set_new(doc, "spec", spec);
    }
    set_spec(l, spec, is_ours(l));
    CLEANUP(mem) char *body = json_dumps(doc, JSON_COMPACT);
    lease_send(l, l->doc ? "PUT" : "POST", l->doc ? l->path : l->all_path, body, on_write);
}

static void on_retry_due(void *ctx)
{
    struct kube_lease *l = ctx;
    loop_timer_set(l->look, loop_now_ns(l->config.loop) + l->config.retry_ns);
    if (l->call || l->releasing)
        return;
    if (l->leads)
        send_lease_update(l);
    else
        send_lease_get(l);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct kube_lease *kube_lease_new(const struct kube_lease_config *config)
{
    CLEANUP(str) struct str path = {0};
    struct kube_lease *l = mem_zalloc(sizeof *l);
    l->config = *config;
    l->config.duration_s = config->duration_s ? config->duration_s : DURATION_S;
    l->config.deadline_ns = config->deadline_ns ? config->deadline_ns : DEADLINE_NS;
    l->config.retry_ns = config->retry_ns ? config->retry_ns : RETRY_NS;
    assert(l->config.deadline_ns < l->config.duration_s * SECOND_NS && l->config.retry_ns < l->config.deadline_ns);
    l->identity = mem_strdup(config->identity);
    l->namespace = mem_strdup(config->namespace);
    l->name = mem_strdup(config->name);
    str_addf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", config->namespace);
    l->all_path = mem_strdup(path.at);
    str_addf(&path, "/%s", config->name);
    l->path = str_take(&path);
    l->look = loop_timer_new(config->loop, on_retry_due, l);
    l->expiry = loop_timer_new(config->loop, on_expiry, l);
    l->release_timeout = loop_timer_new(config->loop, on_release_timeout, l);
    on_retry_due(l);
    return l;
}

void kube_lease_free(struct kube_lease *l)
{
    if (!l)
        return;
    if (l->call)
        kube_cancel(l->call);
    loop_source_free(l->look);
    loop_source_free(l->expiry);
    loop_source_free(l->release_timeout);
    json_decref(l->doc);
    char *const texts[] = {l->identity, l->path, l->all_path, l->namespace, l->name, l->seen_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        mem_free(texts[i]);
    mem_free(l);
}

void kube_lease_release(struct kube_lease *l, void (*tell)(void *ctx), void *ctx)
{
    l->releasing = true;
    l->released = tell;
    l->released_ctx = ctx;
    int64_t patience_ns = l->config.deadline_ns < RELEASE_NS_MAX ? l->config.deadline_ns : RELEASE_NS_MAX;
    loop_timer_set(l->release_timeout, loop_now_ns(l->config.loop) + patience_ns);
    lead_end(l);
    if (l->call)
        return; /* its answer comes first, as it has the current version */
    if (l->doc && is_ours(l))
        send_lease_update(l);
    else
        loop_timer_set(l->release_timeout, loop_now_ns(l->config.loop));
}

/* notification_send.c - delivery of notifications: one at a time per address, retried after failures, deleted after
 * delivery.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/notification.h"
#include "control/state/commit.h"
#include "control/system/settings_table.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

#define SECOND_NS INT64_C(1000000000)
enum { FIRST_WAIT_S = 5 }; /* after the first failure; doubled after each further one */

/* A notification that waits or is being delivered. */
struct delivery {
    struct notifications *notifications;
    uint64_t number, address; /* address: hash of the recipient */
    unsigned tries;
    int64_t next_ns; /* steady time */
    bool busy, told, seen;
    /* During delivery only: */
    struct arena arena;
    struct notification_delivery posting;
    struct berth_err err;
    int rc;
};

struct notifications {
    struct control *control;
    struct control_notifier post;
    VEC(struct delivery *) deliveries; /* by document number */
    size_t under_way;
    int64_t next_ns;
    int64_t again_ns; /* steady time; no documents are deleted before */
    bool dirty, stopped, clearing;
};

void control_set_notifier(struct control *c, const struct control_notifier *post)
{
    c->notifications->post = *post;
    c->notifications->dirty = true;
}

bool notifications_mail_command(const struct notifications *n)
{
    return n->post.mail_command != NULL;
}

struct notifications *notifications_new(struct control *control)
{
    struct notifications *n = mem_zalloc(sizeof *n);
    n->control = control;
    n->dirty = true;
    return n;
}

static void delivery_free(struct delivery *e)
{
    arena_done(&e->arena);
    mem_free(e);
}

void notifications_free(struct notifications *n)
{
    for (size_t i = 0; i < n->deliveries.len; i++)
        delivery_free(n->deliveries.at[i]);
    vec_done(&n->deliveries);
    mem_free(n);
}

void notifications_event(struct notifications *n)
{
    n->dirty = true;
}

void notifications_stop(struct notifications *n)
{
    n->stopped = true;
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static const char *sign(struct arena *arena, const char *secret, const char *body)
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    char *hex = arena_alloc(arena, 2 * sizeof mac + 1);
    crypto_auth_hmacsha256_state state;
    if (!*secret)
        return NULL;
    (void)crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, strlen(body));
    (void)crypto_auth_hmacsha256_final(&state, mac);
    return sodium_bin2hex(hex, 2 * sizeof mac + 1, mac, sizeof mac);
}

/* Makes {"event", "job", "name", "owner", "state", "at", "reason", "id"}; a receiver recognises repeated deliveries by
 * "id". */
static const char *json_body(struct delivery *e, const json_t *doc)
{
    static const char *const keys[] = {"event", "job", "name", "owner", "state", "at", "reason"};
    json_t *body = json_pack("{s:I}", "id", (json_int_t)e->number);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(doc, keys[i]))
            (void)json_object_set(body, keys[i], json_object_get(doc, keys[i]));
    char *text = json_dumps(body, JSON_COMPACT);
    const char *kept = arena_strdup(&e->arena, text ? text : "{}");
    free(text);
    json_decref(body);
    return kept;
}

static const char *mail_body(struct delivery *e, const json_t *doc, const char *from, const char *to)
{
    const char *reason = text_at(doc, "reason"), *name = text_at(doc, "name");
    return arena_fmt(&e->arena,
                     "From: %s\r\nTo: %s\r\nSubject: Berth: job %s %s\r\nMIME-Version: 1.0\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\nAuto-Submitted: auto-generated\r\n\r\n"
                     "Job %s%s%s%s %s at %s.\r\n%s%s%s",
                     from, to, text_at(doc, "job"), text_at(doc, "event"), text_at(doc, "job"), *name ? " (" : "", name,
                     *name ? ")" : "",
                     strcmp(text_at(doc, "event"), "preempted") == 0 ? "was preempted"
                     : strcmp(text_at(doc, "event"), "failed") == 0  ? "has failed"
                     : strcmp(text_at(doc, "event"), "ended") == 0   ? "has ended"
                                                                     : "has started",
                     text_at(doc, "at"), *reason ? "Reason: " : "", reason, *reason ? "\r\n" : "");
}

/* Fills the posting. The settings are read at delivery, because a recipient may not be allowed any more: -EPERM. */
static int posting_make(struct delivery *e, const json_t *doc)
{
    const struct state *s = e->notifications->control->state;
    const char *to = text_at(doc, "to"), *mail = notification_mail(to);
    struct notification_delivery *p = &e->posting;
    *p = (struct notification_delivery){0};
    if (strstr(to, "://")) {
        p->allow = system_setting_text(s, SETTING_NOTIFY_ALLOW, &e->arena);
        enum notification_allowed allowed = notification_url_allowed(p->allow, to);
        p->host_named = allowed == NOTIFICATION_NAMED;
        if (allowed == NOTIFICATION_REFUSED)
            return err_set(&e->err, EPERM, "the setting notify_allow does not allow this URL");
        p->url = arena_strdup(&e->arena, to);
        p->body = json_body(e, doc);
        const char *secret = "";
        int rc =
            notification_secret(e->notifications->control, system_setting_text(s, SETTING_NOTIFY_SECRET, &e->arena),
                                &e->arena, &secret, &e->err);
        if (rc == 0)
            p->signature = sign(&e->arena, secret, p->body);
        return rc;
    }
    const char *smtp = system_setting_text(s, SETTING_SMTP_URL, &e->arena);
    p->from = system_setting_text(s, SETTING_MAIL_FROM, &e->arena);
    p->mail_command = e->notifications->post.mail_command;
    p->smtp_url = !p->mail_command && *smtp ? smtp : NULL;
    if (!mail || !notification_mail(p->from) || (!p->mail_command && !p->smtp_url))
        return err_set(&e->err, EPERM, "mail is not configured, or an address is invalid");
    p->mail = arena_strdup(&e->arena, mail);
    p->body = mail_body(e, doc, p->from, p->mail);
    return 0;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void work(void *arg)
{
    struct delivery *e = arg;
    e->rc = e->notifications->post.send(e->notifications->post.ctx, &e->posting, &e->err);
}

static const struct object *notification_of(const struct notifications *n, uint64_t number)
{
    char text[24];
    return state_find(n->control->state, KIND_NOTIFICATION, str_u64(number, text));
}

/* Ends the delivery for good: delivered, or given up (`why`). */
static void finish(struct delivery *e, const char *why)
{
    struct control *c = e->notifications->control;
    const struct object *o = notification_of(e->notifications, e->number);
    e->told = true;
    if (!why || !o)
        return;
    CLEANUP(json) json_t *doc = object_doc(o);
    log_write(c->env.log, c->now_ns, LEVEL_WARN, "notice.failed", LOG_TEXT("job", text_at(doc, "job")),
              LOG_TEXT("text", why));
    char message[EVENT_TEXT_MAX];
    (void)snprintf(message, sizeof message, "the notification of %.80s (%.20s) failed: %.100s", text_at(doc, "to"),
                   text_at(doc, "event"), why);
    struct object_event event = {.type = "NotifyFailed",
                                 .kind = KIND_JOB,
                                 .id = text_at(doc, "job"),
                                 .owner = o->owner,
                                 .group = o->group,
                                 .message = message};
    events_add(c->events, c->now_ns, &event);
}

static void on_send_done(void *arg)
{
    struct delivery *e = arg;
    struct notifications *n = e->notifications;
    int64_t now_ns = n->control->env.steady_ns(n->control->env.ctx);
    e->busy = false;
    n->under_way--;
    n->dirty = true;
    if (e->rc == 0) {
        finish(e, NULL);
    } else if (++e->tries >= NOTIFICATION_TRIES_MAX || e->rc == -EINVAL) { /* permanent failures are not retried */
        finish(e, e->err.text);
    } else {
        int64_t next_ns = now_ns + (FIRST_WAIT_S * SECOND_NS << (e->tries - 1));
        /* other notifications for the same address wait, too: they would fail as well */
        for (size_t i = 0; i < n->deliveries.len; i++)
            if (n->deliveries.at[i]->address == e->address && n->deliveries.at[i]->next_ns < next_ns)
                n->deliveries.at[i]->next_ns = next_ns;
    }
    n->control->env.wake_at(n->control->env.ctx, now_ns);
}

static void start(struct delivery *e, const struct object *o)
{
    struct notifications *n = e->notifications;
    CLEANUP(json) json_t *doc = object_doc(o);
    const json_t *at = json_object_get(doc, "at");
    int64_t at_ns = 0;
    arena_done(&e->arena);
    arena_init(&e->arena);
    bool old = !at || timestamp_parse(at, &at_ns, NULL) < 0 ||
               n->control->now_ns - at_ns > (int64_t)NOTIFICATION_AGE_S_MAX * SECOND_NS;
    if (old || posting_make(e, doc) < 0) {
        finish(e, old ? "the notification is too old" : e->err.text);
        n->dirty = true;
        return;
    }
    e->busy = true;
    n->under_way++;
    n->post.run(n->post.ctx, work, on_send_done, e);
}

/* ---- pending notifications -------------------------------------------------------------------------------------- */

static struct delivery *delivery_find(struct notifications *n, uint64_t number)
{
    size_t low = 0, high = n->deliveries.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (n->deliveries.at[mid]->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n->deliveries.len && n->deliveries.at[low]->number == number ? n->deliveries.at[low] : NULL;
}

static int delivery_compare(const void *a, const void *b)
{
    const struct delivery *x = *(struct delivery *const *)a, *y = *(struct delivery *const *)b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Adds an entry for each new document, and drops the entries of deleted documents. */
static void deliveries_sync(struct notifications *n)
{
    size_t len, known = n->deliveries.len, kept = 0;
    const struct object *const *list = state_list(n->control->state, KIND_NOTIFICATION, &len);
    for (size_t i = 0; i < known; i++)
        n->deliveries.at[i]->seen = n->deliveries.at[i]->busy;
    for (size_t i = 0; i < len; i++) {
        int64_t number = 0;
        (void)str_parse_i64(list[i]->id, &number);
        struct delivery *e = delivery_find(n, (uint64_t)number);
        if (!e) {
            CLEANUP(json) json_t *doc = object_doc(list[i]);
            const char *to = text_at(doc, "to");
            e = mem_zalloc(sizeof *e);
            *e = (struct delivery){
                .notifications = n, .number = (uint64_t)number, .address = hash_bytes(to, strlen(to), 0), .next_ns = 0};
            arena_init(&e->arena);
            vec_push(&n->deliveries, e);
            if (n->deliveries.len > 1 && delivery_compare(&n->deliveries.at[n->deliveries.len - 2],
                                                          &n->deliveries.at[n->deliveries.len - 1]) > 0)
                qsort(n->deliveries.at, n->deliveries.len, sizeof *n->deliveries.at, delivery_compare);
        }
        e->seen = true;
    }
    for (size_t i = 0; i < n->deliveries.len; i++) {
        if (n->deliveries.at[i]->seen)
            n->deliveries.at[kept++] = n->deliveries.at[i];
        else
            delivery_free(n->deliveries.at[i]);
    }
    n->deliveries.len = kept;
}

/* After a failure the deletion is repeated after a pause. */
static void delivered_deleted(void *ctx, const struct store_result *result)
{
    struct notifications *n = ctx;
    n->clearing = false;
    n->dirty = true;
    if (result->rc < 0)
        n->again_ns = n->control->env.steady_ns(n->control->env.ctx) + SECOND_NS;
}

/* Deletes the documents of delivered notifications. */
static void delivered_delete(struct notifications *n)
{
    struct control *control = n->control;
    struct arena arena;
    struct change change;
    struct berth_err err;
    char text[24];
    arena_init(&arena);
    change_init(&change, control->state, &arena);
    for (size_t i = 0; i < n->deliveries.len; i++)
        if (n->deliveries.at[i]->told && notification_of(n, n->deliveries.at[i]->number))
            change_delete(&change, KIND_NOTIFICATION, str_u64(n->deliveries.at[i]->number, text));
    if (!change_empty(&change)) {
        json_int_t last = (json_int_t)state_last_number(control->state, KIND_NOTIFICATION);
        change_put_unguarded(&change, KIND_COUNTER, kinds[KIND_NOTIFICATION].plural, json_pack("{s:I}", "last", last));
        struct commit_note note = {.who = "berth", .verb = "notice"};
        n->clearing = true;
        int rc = commit_submit(control, &change, &note, delivered_deleted, n, &err);
        if (rc < 0)
            delivered_deleted(n, &(struct store_result){.rc = rc});
        else if (rc == 0)
            n->clearing = false;
    }
    change_done(&change);
    arena_done(&arena);
}

/* Gets the addresses of running deliveries. Returns how many there are. */
static size_t busy_addresses(const struct notifications *n, uint64_t ret[static NOTIFICATIONS_SENDING_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < n->deliveries.len && len < n->under_way; i++)
        if (n->deliveries.at[i]->busy)
            ret[len++] = n->deliveries.at[i]->address;
    return len;
}

static bool is_among(uint64_t address, const uint64_t *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (list[i] == address)
            return true;
    return false;
}

int64_t notifications_step(struct notifications *n, int64_t steady_ns)
{
    if (n->stopped || !n->post.send || (!n->dirty && steady_ns < n->next_ns))
        return n->stopped || !n->post.send ? INT64_MAX : n->next_ns;
    n->dirty = false;
    deliveries_sync(n);
    int64_t next_ns = INT64_MAX;
    uint64_t busy[NOTIFICATIONS_SENDING_MAX];
    size_t busy_len = busy_addresses(n, busy);
    for (size_t i = 0; i < n->deliveries.len && n->under_way < NOTIFICATIONS_SENDING_MAX; i++) {
        struct delivery *e = n->deliveries.at[i];
        const struct object *o = e->busy || e->told ? NULL : notification_of(n, e->number);
        if (!o)
            continue;
        if (e->next_ns > steady_ns)
            next_ns = e->next_ns < next_ns ? e->next_ns : next_ns;
        else if (!is_among(e->address, busy, busy_len)) {
            start(e, o);
            if (e->busy && busy_len < NOTIFICATIONS_SENDING_MAX)
                busy[busy_len++] = e->address;
        }
    }
    n->next_ns = next_ns;
    if (!n->clearing && steady_ns >= n->again_ns)
        delivered_delete(n);
    if (n->again_ns > steady_ns && n->again_ns < n->next_ns)
        n->next_ns = n->again_ns;
    return n->dirty ? steady_ns : n->next_ns;
}

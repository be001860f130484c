/* routes_decide.c - planning now, explanations, events, audit, backup. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/control_parts.h"
#include "control/page.h"
#include "control/routes.h"
#include "control/status.h"
#include "wire/api.h"

/* The loop has made a plan by the time this runs (ROUTE_WAKES). */
static int schedule(struct call *c)
{
    struct scheduler_seen seen = scheduler_seen(control_scheduler(c->control));
    char now[TIMESTAMP_MAX], hash[24];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, seen.hash);
    c->answer.body =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:b}", "cycle", (json_int_t)seen.cycles, "revision",
                  (json_int_t)seen.revision, "actions", (json_int_t)seen.actions, "pending", (json_int_t)seen.pending,
                  "assumed", (json_int_t)seen.assumed, "now", timestamp_text(seen.now_ns, now), "plan", hash, "seconds",
                  seen.seconds, "alarm", seen.alarm);
    return 0;
}

static int events(struct call *c)
{
    uint64_t limit;
    int rc = call_query_number(c, "limit", 1, EVENTS_MAX, 100, &limit);
    if (rc < 0)
        return rc;
    c->answer.body =
        json_pack("{s:o}", "items", events_list(c->control->events, c, call_query(c, "id"), (size_t)limit));
    return 0;
}

/* ---- audit: the journal's records of who changed what, newest last ---- */

enum { LOOK_BACK = SEALER_KEEP }; /* older ones are in segments */

struct audit {
    uint64_t end; /* the first record that is not looked at */
    json_t *items;
    size_t limit, bytes; /* the second: of the items, as text */
    const char *who, *subject;
    bool all;
};

static void audit_keep(struct audit *a, json_t *record)
{
    (void)json_array_append(a->items, record);
    a->bytes += json_text_bytes(record);
    while (json_array_size(a->items) > 1 &&
           (json_array_size(a->items) > a->limit || a->bytes > PAGE_BYTES_MAX)) { /* the newest stay */
        a->bytes -= json_text_bytes(json_array_get(a->items, 0));
        (void)json_array_remove(a->items, 0);
    }
}

static int audit_record(void *ctx, const struct store_record *r)
{
    struct audit *a = ctx;
    if (r->seq >= a->end)
        return 1;
    json_t *record = json_loadb(r->record.at, r->record.len, 0, NULL);
    const char *who = json_string_value(json_object_get(record, "who"));
    const char *subject = json_string_value(json_object_get(record, "subject"));
    bool wanted = record && (a->all || !who || strcmp(who, "berth") != 0) &&
                  (!a->who || (who && strcmp(who, a->who) == 0)) &&
                  (!a->subject || (subject && strcmp(subject, a->subject) == 0));
    if (wanted) {
        json_t *keys = json_array();
        size_t i;
        json_t *change;
        json_array_foreach(json_object_get(record, "changes"), i, change)(void)
            json_array_append(keys, json_array_get(change, 0));
        (void)json_object_set_new(record, "changes", keys);
        if (json_object_del(record, "cycle") == 0)
            (void)json_object_set_new(record, "decision", json_true());
        (void)json_object_set_new(record, "seq", json_integer((json_int_t)r->seq));
        (void)json_object_set_new(record, "revision", json_integer((json_int_t)r->revision));
        char at[TIMESTAMP_MAX];
        (void)json_object_set_new(record, "at",
                                  json_string(timestamp_text(json_integer_value(json_object_get(record, "at")), at)));
        audit_keep(a, record);
    }
    json_decref(record);
    return 0;
}

static int audit(struct call *c)
{
    /* The log may be long, and everybody waits meanwhile. */
    uint64_t limit, last = store_log_last(control_store(c->control)), from = 0;
    int rc = call_query_number(c, "limit", 1, 10000, 100, &limit);
    if (rc == 0)
        rc = call_query_number(c, "from", 1, INT64_MAX, last > LOOK_BACK ? last - LOOK_BACK + 1 : 1, &from);
    if (rc == 0 && from <= store_log_trimmed(control_store(c->control)))
        rc = err_set(&c->err, ESTALE,
                     "records before %" PRIu64
                     " are in the journal's segments; where berthd runs, read them with: berth journal show --data DIR",
                     store_log_trimmed(control_store(c->control)) + 1);
    if (rc < 0)
        return rc;
    const char *all = call_query(c, "all");
    struct audit a = {.end = from + LOOK_BACK,
                      .items = json_array(),
                      .limit = (size_t)limit,
                      .who = call_query(c, "who"),
                      .subject = call_query(c, "subject"),
                      .all = all && strcmp(all, "true") == 0};
    rc = store_log(control_store(c->control), from, audit_record, &a, &c->err);
    c->answer.body = json_pack("{s:o}", "items", a.items);
    return rc < 0 ? rc : 0;
}

static int backup(struct call *c)
{
    char path[] = "/tmp/berth-backup-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return err_set(&c->err, EIO, "no temporary file can be made: %s", strerror(errno));
    (void)close(fd);
    (void)remove(path);
    int rc = store_backup(control_store(c->control), path, &c->err);
    if (rc == 0)
        c->answer.file = arena_strdup(&c->arena, path);
    return rc;
}

enum { NO_BODY_MAX = 64 }; /* {} and the like */

const struct route decide_routes[] = {
    {"POST", "/v1/schedule",           PERMIT_CLUSTER, 0,           ROUTE_WAKES | ROUTE_HEAVY, schedule,     "Make a plan now",                          NULL, NULL                        },
    {"GET",  "/v1/why/{kind}/{id}",    PERMIT_CLUSTER, 0,           ROUTE_HEAVY,               why_run,      "Why is it not as wished",                  NULL, NULL                        },
    {"GET",  "/v1/events",             PERMIT_READ,    0,           ROUTE_HEAVY,               events,       "What happened lately",                     NULL, "limit,id"                  },
    {"GET",  "/v1/audit",              PERMIT_AUDIT,   0,           ROUTE_HEAVY,               audit,        "Who changed what",                         NULL, "limit,from,who,subject,all"},
    {"GET",  "/v1/audit/{seq}",        PERMIT_AUDIT,   0,           ROUTE_HEAVY,               audit_one,    "A record, of a decision with all it says",
     NULL,                                                                                                                                                     NULL                        },
    {"POST", "/v1/audit/{seq}/replay", PERMIT_AUDIT,   NO_BODY_MAX, ROUTE_HEAVY,               audit_replay,
     "Make a decision again, and compare",                                                                                                               NULL, NULL                        },
    {"GET",  "/v1/backup",             PERMIT_SYSTEM,  0,           ROUTE_BESIDE,              backup,       "The whole store in one file",              NULL, NULL                        },
};
const size_t decide_routes_len = sizeof decide_routes / sizeof *decide_routes;

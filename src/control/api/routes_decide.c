/* routes_decide.c - routes of planning on demand, explanations, events, audit and backup. */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/api/page.h"
#include "control/api/routes.h"
#include "control/control_parts.h"
#include "control/explain/status.h"
#include "control/system/backup.h"
#include "wire/doc/api.h"

/* ROUTE_SCHEDULES: the scheduler has made a plan before this verb runs. */
static int schedule(struct request *c)
{
    struct scheduler_status status = scheduler_status(control_scheduler(c->control));
    char now[TIMESTAMP_MAX], hash[24];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, status.hash);
    c->answer.body =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:b}", "cycle", (json_int_t)status.cycles, "revision",
                  (json_int_t)status.revision, "actions", (json_int_t)status.actions, "pending",
                  (json_int_t)status.pending, "assumed", (json_int_t)status.assumed, "now",
                  timestamp_text(status.now_ns, now), "plan", hash, "seconds", status.seconds, "alarm", status.alarm);
    return 0;
}

static int events(struct request *c)
{
    uint64_t limit;
    int rc = request_query_number(c, "limit", 1, EVENTS_MAX, 100, &limit);
    if (rc < 0)
        return rc;
    c->answer.body =
        json_pack("{s:o}", "items", events_list(c->control->events, c, request_query(c, "id"), (size_t)limit));
    return 0;
}

/* ---- audit: the journal's records of changes and their callers, newest last ------------------------------------- */

enum { AUDIT_RECORDS_MAX = SEALER_KEEP }; /* older records are in segments */

struct audit_query {
    uint64_t end; /* first record that is not examined */
    json_t *items;
    size_t limit, bytes; /* `bytes`: of the items as JSON text */
    const char *who, *subject;
    bool all;
};

static void audit_add_record(struct audit_query *a, json_t *record)
{
    (void)json_array_append(a->items, record);
    a->bytes += json_text_bytes(record);
    while (json_array_size(a->items) > 1 &&
           (json_array_size(a->items) > a->limit || a->bytes > PAGE_BYTES_MAX)) { /* drops the oldest records */
        a->bytes -= json_text_bytes(json_array_get(a->items, 0));
        (void)json_array_remove(a->items, 0);
    }
}

static int audit_record(void *ctx, const struct store_record *r)
{
    struct audit_query *a = ctx;
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
        audit_add_record(a, record);
    }
    json_decref(record);
    return 0;
}

static int audit(struct request *c)
{
    /* The search is bounded: the log may be long, and every other request waits meanwhile. */
    uint64_t limit, last = store_log_last(control_store(c->control)), from = 0;
    int rc = request_query_number(c, "limit", 1, 10000, 100, &limit);
    if (rc == 0)
        rc = request_query_number(c, "from", 1, INT64_MAX, last > AUDIT_RECORDS_MAX ? last - AUDIT_RECORDS_MAX + 1 : 1,
                                  &from);
    if (rc == 0 && from <= store_log_trimmed(control_store(c->control)))
        rc = err_set(&c->err, ESTALE,
                     "records before %" PRIu64
                     " are in the journal's segments; read them on the host of berthd with: berth journal show "
                     "--data DIR",
                     store_log_trimmed(control_store(c->control)) + 1);
    if (rc < 0)
        return rc;
    const char *all = request_query(c, "all");
    struct audit_query a = {.end = from + AUDIT_RECORDS_MAX,
                            .items = json_array(),
                            .limit = (size_t)limit,
                            .who = request_query(c, "who"),
                            .subject = request_query(c, "subject"),
                            .all = all && strcmp(all, "true") == 0};
    rc = store_log(control_store(c->control), from, audit_record, &a, &c->err);
    c->answer.body = json_pack("{s:o}", "items", a.items);
    return rc < 0 ? rc : 0;
}

#define BACKUP_TEMPLATE "/tmp/berth-backup-XXXXXX"

/* Creates a file name for an answer; no file of this name exists. */
static int answer_name(struct request *c, char path[static sizeof BACKUP_TEMPLATE])
{
    memcpy(path, BACKUP_TEMPLATE, sizeof BACKUP_TEMPLATE);
    int fd = mkstemp(path);
    if (fd < 0)
        return err_set(&c->err, EIO, "cannot create a temporary file: %s", strerror(errno));
    (void)close(fd);
    (void)remove(path);
    return 0;
}

static int backup(struct request *c)
{
    char path[sizeof BACKUP_TEMPLATE];
    int rc = answer_name(c, path);
    if (rc == 0)
        rc = store_backup(control_store(c->control), path, &c->err);
    if (rc == 0)
        c->answer.file = arena_strdup(&c->arena, path);
    return rc;
}

/* Parses exactly `len` bytes in hexadecimal. */
static bool hex_read(const json_t *text, unsigned char *to, size_t len)
{
    size_t n = 0;
    return json_string_length(text) == 2 * len &&
           sodium_hex2bin(to, len, json_string_value(text), 2 * len, NULL, &n, NULL) == 0 && n == len;
}

static int seal_read(struct request *c, struct backup_key *key, bool *ret_journal)
{
    const json_t *salt = json_object_get(c->body, "salt"), *journal = json_object_get(c->body, "journal");
    static const char *const known[] = {"key", "salt", "passes", "memory_mib", "journal"};
    size_t found = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found += json_object_get(c->body, known[i]) != NULL;
    if (found < json_object_size(c->body))
        return err_set(&c->err, EINVAL, "expected only key, salt, passes, memory_mib and journal");
    if (!hex_read(json_object_get(c->body, "key"), key->bytes, sizeof key->bytes))
        return err_set(&c->err, EINVAL, "key: expected 64 hexadecimal digits");
    if (salt && !hex_read(salt, key->salt, sizeof key->salt))
        return err_set(&c->err, EINVAL, "salt: expected 32 hexadecimal digits");
    if (journal && !json_is_boolean(journal))
        return err_set(&c->err, EINVAL, "journal: expected true or false");
    json_int_t passes = json_integer_value(json_object_get(c->body, "passes")),
               memory = json_integer_value(json_object_get(c->body, "memory_mib"));
    if (salt && (passes < 1 || passes > BACKUP_PASSES_MAX || memory < 1 || memory > BACKUP_MEMORY_MIB_MAX))
        return err_set(&c->err, EINVAL, "passes and memory_mib: expected 1 to %d and 1 to %d", BACKUP_PASSES_MAX,
                       BACKUP_MEMORY_MIB_MAX);
    key->derived = salt;
    key->passes = salt ? (uint32_t)passes : 0;
    key->memory_mib = salt ? (uint32_t)memory : 0;
    *ret_journal = !journal || json_is_true(journal);
    return 0;
}

/* The backup contains the keys of the daemon: it is always sealed, and only a caller with all permissions may request
 * it. */
static int backup_sealed(struct request *c)
{
    char path[sizeof BACKUP_TEMPLATE];
    const char *dir = c->control->options.data_dir;
    struct backup_key key = {0};
    struct backup_options options = {.key = &key};
    if (!caller_covers(&c->caller, role_find("admin")->scope))
        return err_set(&c->err, EACCES, "only administrators may back up the keys of the daemon");
    int rc = seal_read(c, &key, &options.journal);
    if (rc == 0 && !dir)
        rc = err_set(&c->err, EIO, "this daemon has no key folder; GET /v1/backup returns the store alone");
    if (rc == 0)
        rc = answer_name(c, path);
    if (rc == 0)
        rc = backup_write(control_store(c->control), dir, &options, path, &c->err);
    if (rc == 0)
        c->answer.file = arena_strdup(&c->arena, path);
    sodium_memzero(&key, sizeof key);
    return rc;
}

enum { NO_BODY_MAX = 64 }; /* {} or similar */
enum { SEAL_BODY_MAX = 1024 };

const struct route decide_routes[] = {
    ROUTE("POST", "/v1/schedule", PERMIT_CLUSTER, 0, ROUTE_SCHEDULES | ROUTE_HEAVY, schedule, "Plan now"),
    ROUTE("GET", "/v1/why/{kind}/{id}", PERMIT_CLUSTER, 0, ROUTE_HEAVY, why_run, "Explain the status of an object"),
    ROUTE("GET", "/v1/events", PERMIT_READ, 0, ROUTE_HEAVY, events, "List recent events", .query = "limit,id"),
    ROUTE("GET", "/v1/audit", PERMIT_AUDIT, 0, ROUTE_HEAVY, audit, "List the audit log",
          .query = "limit,from,who,subject,all"),
    ROUTE("GET", "/v1/audit/{seq}", PERMIT_AUDIT, 0, ROUTE_HEAVY, audit_one,
          "Read an audit record; of a decision, with details"),
    ROUTE("POST", "/v1/audit/{seq}/replay", PERMIT_AUDIT, NO_BODY_MAX, ROUTE_HEAVY, audit_replay,
          "Repeat a decision and compare the results"),
    ROUTE("GET", "/v1/backup", PERMIT_SYSTEM, 0, ROUTE_WORKER, backup, "Download the store as one file"),
    ROUTE("POST", "/v1/backup", PERMIT_SYSTEM, SEAL_BODY_MAX, ROUTE_WORKER, backup_sealed,
          "Download the store, journal, keys and certificates as one sealed file"),
};
const size_t decide_routes_len = sizeof decide_routes / sizeof *decide_routes;

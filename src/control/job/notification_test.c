/* notification_test.c - notifications about jobs: recipients, retries, failed deliveries. */
#include "control/api/kit_test.h"

#include <errno.h>

#include "control/control_parts.h"
#include "control/job/notification.h"
#include "control/system/settings_table.h"

#define ALICE "user:alice"
#define N1 "node:n1"
#define SECOND INT64_C(1000000000)

enum { SENT_MAX = 64 };

struct sent {
    char to[128], body[1024], signature[80];
};

struct scene {
    struct kit k;
    int seq;
    struct sent sent[SENT_MAX];
    size_t len;
    size_t failures; /* number of next deliveries that fail */
    size_t tries;
    const char *mail_command;
    size_t full; /* number of commits that fail after the next delivery */
};

static void run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

static int send(void *ctx, const struct notification_delivery *p, struct berth_err *err)
{
    struct scene *s = ctx;
    s->tries++;
    if (s->failures) {
        s->failures--;
        return err_set(err, ECONNREFUSED, "nobody is there");
    }
    if (s->full)
        store_memory_fail(s->k.store, ENOSPC, s->full);
    s->full = 0;
    assert_true(s->len < SENT_MAX);
    struct sent *to = &s->sent[s->len++];
    (void)snprintf(to->to, sizeof to->to, "%s", p->url ? p->url : p->mail);
    (void)snprintf(to->body, sizeof to->body, "%s", p->body);
    (void)snprintf(to->signature, sizeof to->signature, "%s", p->signature ? p->signature : "");
    return 0;
}

static void post_start(struct scene *s)
{
    struct control_notifier post = {.ctx = s, .run = run, .send = send, .mail_command = s->mail_command};
    control_set_notifier(s->k.control, &post);
}

static int open_scene(void **state)
{
    struct scene *s = mem_zalloc(sizeof *s);
    kit_open(&s->k);
    kit_add_users(&s->k);
    CALL(&s->k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: 'https://', lease_s: 86400}");
    s->mail_command = "/usr/sbin/sendmail";
    post_start(s);
    *state = s;
    return 0;
}

static int close_scene(void **state)
{
    kit_done(&((struct scene *)*state)->k);
    mem_free(*state);
    return 0;
}

static void says(struct scene *s, const char *items)
{
    char body[512];
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [%s]}", ++s->seq, items);
    CALL(&s->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
    kit_plan(&s->k);
}

static size_t waiting(const struct scene *s)
{
    size_t len;
    (void)state_list(control_state(s->k.control), KIND_NOTIFICATION, &len);
    return len;
}

/* ---- recipients ------------------------------------------------------------------------------------------------- */

static void each_recipient_gets_its_events(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs",
         "{name: train, requests: {cpu: 1}, notify: [{to: 'https://a.example/hook', on: [started, ended]}, "
         "{to: 'mailto:ann@b.example', on: [ended, failed]}, {to: 'https://c.example/', on: [failed]}]}");
    kit_plan(&s->k);
    assert_int_equal(s->len, 0);
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 1);
    assert_string_equal(s->sent[0].to, "https://a.example/hook");
    assert_non_null(strstr(s->sent[0].body, "\"event\":\"started\""));
    assert_non_null(strstr(s->sent[0].body, "\"job\":\"1\""));
    assert_non_null(strstr(s->sent[0].body, "\"owner\":\"alice\""));
    assert_non_null(strstr(s->sent[0].body, "\"name\":\"train\""));
    assert_null(strstr(s->sent[0].body, "\"to\""));
    says(s, "{id: 1, state: ended, exit: 0}");
    assert_int_equal(s->len, 3);
    assert_string_equal(s->sent[1].to, "https://a.example/hook");
    assert_non_null(strstr(s->sent[1].body, "\"event\":\"ended\""));
    assert_string_equal(s->sent[2].to, "ann@b.example");
    assert_non_null(strstr(s->sent[2].body, "To: ann@b.example\r\nSubject: Berth: job 1 ended\r\n"));
    assert_non_null(strstr(s->sent[2].body, "\r\n\r\nJob 1 (train) has ended at 2026-03-01T12:00"));
    assert_int_equal(waiting(s), 0);
    kit_restart(&s->k);
    post_start(s);
    kit_sleep(&s->k, 2);
    assert_int_equal(s->len, 3); /* delivered once */
}

static void failure_notification_has_the_reason(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs",
         "{name: a, restart_policy: never, notify: ['https://a.example/']}"); /* default events: ended and failed */
    kit_plan(&s->k);
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 0);
    says(s, "{id: 1, state: failed, exit: 3}");
    assert_int_equal(s->len, 1);
    assert_non_null(strstr(s->sent[0].body, "\"event\":\"failed\""));
    assert_non_null(strstr(s->sent[0].body, "exit code 3"));
}

static void posted_body_is_signed(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{notify_secret: key}");
    SAYS(&s->k, "NAME.OWNER/KEY");
    CALL(&s->k, 201, ADMIN, "POST", "/v1/secrets", "{name: hook, data: {key: hush-hush}}");
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{notify_secret: hook.admin/other}");
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{smtp_url: 'smtp://ann:hush-hush@b.example'}");
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_secret: hook.admin/key}");
    CALL(&s->k, 200, ADMIN, "GET", "/v1/system/settings", NULL);
    assert_null(strstr(s->k.text, "hush-hush"));
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 1);
    assert_int_equal(strlen(s->sent[0].signature), 64);
    assert_int_equal(strspn(s->sent[0].signature, "0123456789abcdef"), 64);
    CALL(&s->k, 204, ADMIN, "DELETE", "/v1/secrets/hook", NULL);
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: b, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    says(s, "{id: 2, state: running}");
    assert_int_equal(s->len, 1); /* no unsigned notification is sent */
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

static void retries_have_growing_pauses(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    s->failures = 3;
    says(s, "{id: 1, state: running}");
    static const struct {
        int64_t sleep;
        size_t tries, sent;
    } rows[] = {
        {1,  1, 0},
        {5,  2, 0},
        {5,  2, 0},
        {6,  3, 0},
        {10, 3, 0},
        {12, 4, 1},
        {60, 4, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        kit_sleep(&s->k, rows[i].sleep);
        if (s->tries != rows[i].tries || s->len != rows[i].sent)
            fail_msg("row %zu: %zu tries, %zu sent", i, s->tries, s->len);
    }
    assert_int_equal(waiting(s), 0);
}

static void delivery_is_given_up_in_the_end(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    s->failures = 1000;
    says(s, "{id: 1, state: running}");
    kit_sleep(&s->k, 1200);
    assert_int_equal(s->tries, NOTIFICATION_TRIES_MAX);
    assert_int_equal(waiting(s), 0);
    CALL(&s->k, 200, ALICE, "GET", "/v1/events", NULL);
    SAYS(&s->k, "NotifyFailed");
    SAYS(&s->k, "nobody is there");
}

static void crash_loses_no_notification(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    s->failures = 1;
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 0);
    assert_int_equal(waiting(s), 1);
    kit_restart(&s->k);
    assert_int_equal(waiting(s), 1);
    post_start(s);
    kit_sleep(&s->k, 1);
    assert_int_equal(s->len, 1);
    assert_int_equal(waiting(s), 0);
}

static void failing_address_delays_no_other(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs",
         "{name: a, notify: [{to: 'https://bad.example/', on: started}, {to: 'https://good.example/', on: started}]}");
    kit_plan(&s->k);
    s->failures = 1;
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 1);
    assert_string_equal(s->sent[0].to, "https://good.example/");
    kit_sleep(&s->k, 6);
    assert_int_equal(s->len, 2);
    assert_string_equal(s->sent[1].to, "https://bad.example/");
}

static void full_disk_is_retried_with_pauses(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    s->full = 5;
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->len, 1);
    assert_int_equal(waiting(s), 1); /* after five tries without a pause the document would be deleted */
    kit_sleep(&s->k, 12);
    assert_int_equal(waiting(s), 0);
    assert_int_equal(s->len, 1);
}

static void delivered_document_is_deleted_after_full_queue(void **state)
{
    struct scene *s = *state;
    struct notifications *n = s->k.control->notifications;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    s->failures = 1;
    says(s, "{id: 1, state: running}");
    s->k.steady_ns += 6 * SECOND;
    kit_queue_fill(&s->k);
    for (int i = 0; i < 2; i++) /* the first call delivers; the second one has no new event */
        (void)notifications_step(n, s->k.steady_ns);
    assert_int_equal(s->len, 1);
    assert_int_equal(waiting(s), 1);
    int64_t next_ns = notifications_step(n, s->k.steady_ns);
    assert_true(next_ns > s->k.steady_ns && next_ns <= s->k.steady_ns + SECOND);
    kit_sleep(&s->k, 2);
    assert_int_equal(waiting(s), 0);
    assert_int_equal(s->len, 1);
}

/* ---- allowed addresses ------------------------------------------------------------------------------------------ */

static void addresses_are_checked_at_submission(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *to;
        int status;
        const char *says;
    } rows[] = {
        {"https://a.example/x?y=1",         201, ""                 },
        {"http://127.0.0.1:8080/x",         201, ""                 },
        {"http://localhost/",               201, ""                 },
        {"http://a.example/",               400, "notify_allow"     },
        {"http://127.0.0.1.evil.example/",  400, "notify_allow"     },
        {"http://127.0.0.1@evil.example/",  400, "notify_allow"     },
        {"http://localhost:x@evil.example", 400, "notify_allow"     },
        {"https:///nowhere",                400, "notify_allow"     },
        {"ann@b.example",                   201, ""                 },
        {"mailto:ann@b.example",            201, ""                 },
        {"a b@c.example",                   400, "is not an address"},
        {"-f@c.example",                    400, "is not an address"},
        {"a@b@c",                           400, "is not an address"},
        {"ann",                             400, "to: expected"     },
    };
    CALL(&s->k, 400, ALICE, "POST", "/v1/jobs", "{name: a, notify: ['http://127.0.0.1:8080/x']}");
    SAYS(&s->k, "notify_allow"); /* services on berthd's machine are not reachable unless the setting names them */
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings",
         "{notify_allow: 'https://,http://127.0.0.1,http://localhost'}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[256];
        (void)snprintf(body, sizeof body, "{name: a, notify: ['%s']}", rows[i].to);
        CALL(&s->k, rows[i].status, ALICE, "POST", "/v1/jobs", body);
        SAYS(&s->k, rows[i].says);
    }
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: 'https://in.example/'}");
    s->mail_command = NULL;
    post_start(s);
    CALL(&s->k, 400, ALICE, "POST", "/v1/jobs", "{name: a, notify: [ann@b.example]}");
    SAYS(&s->k, "mail_command");
    CALL(&s->k, 400, ALICE, "POST", "/v1/jobs", "{name: a, notify: ['https://out.example/']}");
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: ['https://in.example/x']}");
}

static void address_forbidden_meanwhile_is_not_used(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: a, notify: [{to: 'https://a.example/', on: started}]}");
    kit_plan(&s->k);
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: ''}");
    says(s, "{id: 1, state: running}");
    assert_int_equal(s->tries, 0);
    assert_int_equal(waiting(s), 0);
}

static void no_address_is_allowed_by_default(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: null}");
    CALL(&s->k, 400, ALICE, "POST", "/v1/jobs", "{name: a, notify: ['https://a.example/']}");
    SAYS(&s->k, "notify_allow");
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: 'a.example'}");
    SAYS(&s->k, "neither a URL prefix");
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: 'https://a.example/,10.0.0.0/64'}");
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{notify_allow: 'https://a.example/,10.0.0.0/8,::1'}");
}

/* Which lists allow addresses that are not public. */
static void allow_list_names_addresses(void **state)
{
    static const struct {
        const char *allow, *url;
        enum notification_allowed want;
    } rows[] = {
        {"",                         "https://a.example/",      NOTIFICATION_REFUSED},
        {"https://",                 "https://a.example/",      NOTIFICATION_ALLOWED},
        {"https://",                 "https://127.0.0.1/",      NOTIFICATION_ALLOWED},
        {"https://a.example/",       "https://a.example/x",     NOTIFICATION_ALLOWED},
        {"http://127.0.0.1",         "http://127.0.0.1:80/x",   NOTIFICATION_NAMED  },
        {"http://127.0.0.1:80/",     "http://127.0.0.1:80/x",   NOTIFICATION_NAMED  },
        {"http://127.0.0.1:80/",     "http://127.0.0.1:81/x",   NOTIFICATION_REFUSED},
        {"http://,http://[::1]:80/", "http://[::1]:80/x",       NOTIFICATION_NAMED  },
        {"http://localhost",         "http://localhost/",       NOTIFICATION_NAMED  },
        {"http://,http://127.0.0.1", "http://localhost/",       NOTIFICATION_ALLOWED},
        {"http://127.0.0.1",         "http://127.0.0.1@b.org/", NOTIFICATION_REFUSED},
        {"10.0.0.0/8",               "http://10.0.0.1/",        NOTIFICATION_REFUSED},
        {"http://,10.0.0.0/8",       "http://10.0.0.1/",        NOTIFICATION_ALLOWED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (notification_url_allowed(rows[i].allow, rows[i].url) != rows[i].want)
            fail_msg("%s, %s", rows[i].allow, rows[i].url);
}

/* Also for a value that an earlier version has stored. */
static void mail_command_is_not_a_setting(void **state)
{
    struct scene *s = *state;
    s->mail_command = NULL;
    post_start(s);
    CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", "{mail_command: /tmp/evil/sendmail}");
    SAYS(&s->k, "/etc/berth/berthd.conf");
    CALL(&s->k, 400, ADMIN, "PUT", "/v1/system/settings", "{mail_command: /tmp/evil/sendmail}");
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{mail_command: ''}");
    kit_put(&s->k, KIND_SETTING, SETTINGS_ID, "{v: 1, mail_command: /tmp/evil/sendmail}");
    kit_restart(&s->k);
    post_start(s);
    assert_true(system_setting_stored(control_state(s->k.control), "mail_command"));
    CALL(&s->k, 400, ALICE, "POST", "/v1/jobs", "{name: a, notify: [ann@b.example]}");
    SAYS(&s->k, "mail is not configured");
    CALL(&s->k, 200, ADMIN, "GET", "/v1/system/settings", NULL);
    assert_null(strstr(s->k.text, "mail_command"));
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{lease_s: 60}"); /* other settings can be changed */
    assert_false(system_setting_stored(control_state(s->k.control), "mail_command"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_recipient_gets_its_events),
        TEST(failure_notification_has_the_reason),
        TEST(posted_body_is_signed),
        TEST(retries_have_growing_pauses),
        TEST(delivery_is_given_up_in_the_end),
        TEST(crash_loses_no_notification),
        TEST(failing_address_delays_no_other),
        TEST(full_disk_is_retried_with_pauses),
        TEST(delivered_document_is_deleted_after_full_queue),
        TEST(addresses_are_checked_at_submission),
        TEST(address_forbidden_meanwhile_is_not_used),
        TEST(no_address_is_allowed_by_default),
        TEST(allow_list_names_addresses),
        TEST(mail_command_is_not_a_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

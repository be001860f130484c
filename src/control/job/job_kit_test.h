/* job_kit_test.h - for tests: a control with users and one node, whose agent reports what the test says. */
#pragma once

#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define N1 "node:n1"

struct job_kit {
    struct kit k;
    int seq;
};

static inline int jobs_open(void **state)
{
    struct job_kit *j = mem_zalloc(sizeof *j);
    kit_open(&j->k);
    kit_add_users(&j->k);
    CALL(&j->k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1}");
    j->seq = 1;
    *state = j;
    return 0;
}

static inline int jobs_close(void **state)
{
    struct job_kit *j = *state;
    struct berth_err err = {0};
    if (state_audit(control_state(j->k.control), &err) < 0)
        fail_msg("%s", err.text);
    kit_done(&j->k);
    mem_free(j);
    return 0;
}

/* Submits a job and returns its number. */
static inline int64_t submit(struct job_kit *j, const char *who, const char *yaml)
{
    CALL(&j->k, 201, who, "POST", "/v1/jobs", yaml);
    return kit_number(&j->k, "id");
}

static inline void job_get(struct job_kit *j, int64_t job)
{
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)job);
    CALL(&j->k, 200, ADMIN, "GET", url, NULL);
}

static inline void job_do(struct job_kit *j, int want, const char *who, int64_t job, const char *verb)
{
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld/%s", (long long)job, verb);
    CALL(&j->k, want, who, "POST", url, NULL);
}

/* Reports the same text, as the agent, for every unfinished instance of a job. */
static inline void tasks_say(struct job_kit *j, int64_t job, const char *what)
{
    char body[16384];
    size_t at = 0, len = 0;
    job_get(j, job);
    const json_t *all = kit_at(&j->k, "status/instances");
    at = (size_t)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [", ++j->seq);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        const char *is = json_string_value(json_object_get(one, "state"));
        if (strcmp(is, "ended") == 0)
            continue;
        at += (size_t)snprintf(body + at, sizeof body - at, "%s{id: %lld, %s}", len++ ? ", " : "",
                               (long long)json_integer_value(json_object_get(one, "id")), what);
    }
    (void)snprintf(body + at, sizeof body - at, "]}");
    assert_true(len > 0);
    CALL(&j->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
    kit_plan(&j->k);
}

#define STATE(j, job, want)                                                                                            \
    do {                                                                                                               \
        job_get(j, job);                                                                                               \
        if (strcmp(kit_text(&(j)->k, "status/state"), want) != 0)                                                      \
            fail_msg("job %lld: expected %s: %s", (long long)(job), want, (j)->k.text);                                \
    } while (0)

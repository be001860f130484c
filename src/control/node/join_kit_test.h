/* join_kit_test.h - for tests: agents with certificates, as berthd passes them to the control. */
#pragma once

#include <errno.h>
#include <inttypes.h>

#include "control/api/kit_test.h"

#define PROBED                                                                                                         \
    "probed: {allocatable: {cpu: 8, memory: 16Gi, storage: 100Gi}, arch: amd64, labels: {os: linux, kernel: 6.1.0}, "  \
    "runtimes: [process], address: 10.0.0.7, numa: [{id: 0, cpus: 0-7}]}"

/* Signs any request that begins with "KEY"; the certificate is plain text. */
static inline int kit_sign(void *ctx, const struct agent_grant *grant, const char *request, char **ret,
                           struct berth_err *err)
{
    char text[256];
    (void)ctx;
    if (strncmp(request, "KEY", 3) != 0)
        return err_set(err, EINVAL, "request: not a certificate request");
    (void)snprintf(text, sizeof text, "%s for %s 01%016" PRIx64 "ff until %" PRId64, request, grant->name,
                   grant->joined, grant->not_after_ns);
    *ret = mem_strdup(text);
    return 0;
}

static inline void kit_agents(struct kit *k)
{
    static const struct control_agents agents = {
        .sign = kit_sign, .ca_pem = "AUTHORITY", .pin = "sha256//pin=", .addresses = "https://head:3981"};
    control_set_agents(k->control, &agents);
}

/* An agent and its certificate. */
struct machine {
    char peer[80], serial[64];
    int64_t until_ns;
};

/* Parses the certificate in the last answer. */
static inline struct machine machine_of(const struct kit *k)
{
    struct machine m = {0};
    assert_int_equal(
        sscanf(kit_text(k, "certificate"), "KEY%*s for %79s %63s until %" SCNd64, m.peer, m.serial, &m.until_ns), 3);
    return m;
}

/* Sends a request as berthd would pass it on: with a token, a certificate, or neither. */
static inline int kit_ask(struct kit *k, const struct machine *m, const char *token, const char *method,
                          const char *path, const char *yaml)
{
    CLEANUP(json) json_t *doc = NULL;
    struct berth_err err = {0};
    char *body = NULL;
    if (yaml && yaml_parse(yaml, strlen(yaml), "body", &doc, &err) < 0)
        fail_msg("%s", err.text);
    if (doc)
        body = json_dumps(doc, JSON_COMPACT);
    const struct request_input request = {
        .method = method,
        .path = path,
        .token = token,
        .peer = m ? m->peer : NULL,
        .peer_serial = m ? m->serial : NULL,
        .peer_until_ns = m ? m->until_ns : 0,
        .remote = "192.0.2.9",
        .body = body ? body : "",
        .body_len = body ? strlen(body) : 0,
    };
    json_decref(k->body);
    k->body = NULL;
    k->answered = false;
    control_handle(k->control, &request, kit_answered, k);
    for (int i = 0; i < 100 && !k->answered; i++)
        (void)store_pump(k->store);
    free(body);
    assert_true(k->answered);
    return k->status;
}

#define ASK(k, want, m, method, path, yaml)                                                                            \
    do {                                                                                                               \
        int status_ = kit_ask(k, m, NULL, method, path, yaml);                                                         \
        if (status_ != (want))                                                                                         \
            fail_msg("%s %s: %d instead of %d: %s", method, path, status_, want, (k)->text);                           \
    } while (0)

/* Invites the node with this body; returns the token's text. */
static inline const char *invited(struct kit *k, const char *node, const char *yaml, char text[static 128])
{
    char path[128];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/invite", node);
    CALL(k, 201, ADMIN, "POST", path, yaml);
    (void)snprintf(text, 128, "%s", kit_text(k, "token"));
    return text;
}

static inline int join_with(struct kit *k, const char *token, const char *rest)
{
    char body[2048];
    (void)snprintf(body, sizeof body, "{token: %s, %s}", token, rest);
    return kit_ask(k, NULL, NULL, "POST", "/v1/join", body);
}

/* Invites a node and joins it. */
static inline struct machine joined(struct kit *k, const char *node, const char *yaml)
{
    char token[128];
    (void)invited(k, node, yaml, token);
    if (join_with(k, token, "request: KEY1, " PROBED) != 200)
        fail_msg("%s", k->text);
    return machine_of(k);
}

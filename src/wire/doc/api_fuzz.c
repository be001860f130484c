/* api_fuzz.c - every reader accepts any document or rejects it with a message; written documents read back the same. */
#include "wire/doc/api.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "wire/doc/optask_doc.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

/* Writes a read document and reads it again: both documents must be equal. */
static void instance_again(const struct instance_doc *d, struct arena *arena)
{
    struct instance_doc again = {0};
    CLEANUP(json) json_t *doc = instance_doc_make(d);
    int rc = instance_doc_read(doc, arena, &again, NULL);
    assert(rc == 0 || d->instance.waits_len || d->instance.replaces > INT64_MAX);
    if (rc < 0)
        return;
    CLEANUP(json) json_t *second = instance_doc_make(&again);
    assert(json_equal(doc, second));
}

static void fact_again(const struct berth_fact *fact, struct arena *arena)
{
    struct doc_meta meta;
    struct berth_fact again = {0};
    if (fact->subject > INT64_MAX)
        return;
    CLEANUP(json) json_t *doc = fact_doc_make(fact);
    int rc = fact_doc_read(doc, arena, &meta, &again, NULL);
    assert(rc == 0 && again.value == fact->value && again.at_ns == fact->at_ns && again.kind == fact->kind);
}

static void schema_again(const json_t *schema)
{
    struct berth_err err = {0};
    json_t *settings = NULL;
    if (settings_schema_check(schema, &err) < 0) {
        assert(err.text[0]);
        return;
    }
    if (settings_check(schema, NULL, &settings, &err) < 0) /* a required setting is missing */
        return;
    json_t *again = NULL;
    int rc = settings_check(schema, settings, &again, &err);
    assert(rc == 0 && json_equal(settings, again));
    json_decref(settings);
    json_decref(again);
}

#define TRY_READ(read, ...)                                                                                            \
    ({                                                                                                                 \
        struct berth_err err_ = {0};                                                                                   \
        int rc_ = read(doc, &arena, __VA_ARGS__, &err_);                                                               \
        assert(rc_ == -err_.code && (rc_ == 0 || err_.text[0]));                                                       \
        rc_ == 0;                                                                                                      \
    })

static void read_all(json_t *doc)
{
    struct arena arena;
    struct doc_meta meta;
    struct work_doc work;
    struct node_doc node;
    struct user_doc user;
    struct role_doc role;
    struct token_doc token;
    struct instance_doc instance;
    struct report_doc report;
    struct volume_doc volume;
    struct secret_doc secret;
    struct berth_resource resource;
    struct berth_profile profile;
    struct berth_fact fact;
    struct group_doc group;
    struct queue_doc queue;
    struct policy_doc policy;
    struct window_doc window;
    struct optask_doc optask;
    struct opstep_doc opstep;
    struct opstep_report said;
    struct optask_act act;
    struct domain_doc domain;
    struct routes_doc routes;
    arena_init(&arena);
    if (TRY_READ(work_doc_read, &work)) {
        assert(work.meta.id && work.weight <= 100 && work.endpoints_len <= ENDPOINTS_MAX && work.run.mounts_len <= 64);
        (void)vm_check(&work, NULL);
    }
    if (TRY_READ(node_doc_read, &node))
        assert(node.meta.id && node.node.gpus_len <= BERTH_NODE_GPUS_MAX);
    (void)TRY_READ(volume_doc_read, &volume);
    (void)TRY_READ(secret_doc_read, &secret);
    (void)TRY_READ(resource_doc_read, &meta, &resource);
    (void)TRY_READ(profile_doc_read, &meta, &profile);
    (void)TRY_READ(group_doc_read, &group);
    (void)TRY_READ(queue_doc_read, &queue);
    (void)TRY_READ(policy_doc_read, &policy);
    if (TRY_READ(optask_doc_read, &optask)) {
        assert(optask.script && optask.parallel >= 1 && optask.timeout_ns > 0);
        assert(optask.init || (optask.nodes_len > 0) != (optask.require_len > 0));
    }
    (void)TRY_READ(opstep_doc_read, &opstep);
    (void)TRY_READ(opstep_report_read, &said);
    (void)TRY_READ(optask_act_read, &act);
    if (TRY_READ(window_doc_read, &window))
        assert(window.start_ns < window.end_ns);
    (void)TRY_READ(domain_doc_read, &domain);
    (void)TRY_READ(routes_doc_read, &routes);
    (void)TRY_READ(user_doc_read, &user);
    (void)TRY_READ(role_doc_read, &role);
    (void)TRY_READ(token_doc_read, &token);
    (void)TRY_READ(report_doc_read, &report);
    if (TRY_READ(instance_doc_read, &instance))
        instance_again(&instance, &arena);
    if (TRY_READ(fact_doc_read, &meta, &fact))
        fact_again(&fact, &arena);
    schema_again(doc);
    doc_strip(doc);
    assert(!json_object_get(doc, "generation"));
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *shared = NULL;
    if (size > 65536 || document_parse((const char *)data, size, "fuzz", &shared, NULL) < 0)
        return 0;
    json_t *doc = json_is_object(shared) && json_object_size(shared) < 1000 ? json_deep_copy(shared) : NULL;
    json_decref(shared);
    if (!doc)
        return 0;
    read_all(doc);
    json_decref(doc);
    return 0;
}

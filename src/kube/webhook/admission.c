#include "kube/webhook/admission.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/document.h"

#define GROUP "berth.dev"
#define REVIEW_VERSION "admission.k8s.io/v1"

static const struct {
    const char *plural;
    enum kind kind;
} resources[] = {
    {"jobs",     KIND_JOB   },
    {"queues",   KIND_QUEUE },
    {"groups",   KIND_GROUP },
    {"users",    KIND_USER  },
    {"domains",  KIND_DOMAIN},
    {"policies", KIND_POLICY},
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Converts an errno to the Status that the API server itself would return. */
static json_t *status_of(const struct berth_err *err)
{
    static const struct {
        int code, http;
        const char *reason;
    } rows[] = {
        {EACCES, 403, "Forbidden"         },
        {EAGAIN, 503, "ServiceUnavailable"},
    };
    int http = 422;
    const char *reason = "Invalid";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == err->code) {
            http = rows[i].http;
            reason = rows[i].reason;
        }
    return json_pack("{s:s, s:i, s:s, s:s}", "status", "Failure", "code", http, "reason", reason, "message", err->text);
}

static json_t *answer_of(const char *uid, int rc, const struct berth_err *err, json_t *warnings)
{
    json_t *response = json_pack("{s:s, s:b}", "uid", uid, "allowed", rc == 0);
    if (rc < 0)
        (void)json_object_set_new(response, "status", status_of(err));
    if (json_array_size(warnings))
        (void)json_object_set(response, "warnings", warnings);
    return json_pack("{s:s, s:s, s:o}", "apiVersion", REVIEW_VERSION, "kind", "AdmissionReview", "response", response);
}

static int admit_with_warning(const struct admission *j, const char *why, json_t *warnings, struct berth_err *err)
{
    CLEANUP(str) struct str text = {0};
    if (j->deny_unchecked)
        return err_set(err, EAGAIN, "%s; try again later", why);
    str_addf(&text, "Not checked: %s.", why);
    (void)json_array_append_new(warnings, json_string(text.at));
    return 0;
}

/* Objects may be created in any order, so a reference to a missing object is only a warning. */
static int tenant_object_check(const struct admission *j, enum kind kind, const json_t *object, json_t *warnings,
                               struct berth_err *err)
{
    const char *name = text_of(json_object_get(object, "metadata"), "name");
    int rc = tenants_check(j->tenants, kind, name, json_object_get(object, "spec"), err);
    if (rc != -ENOENT)
        return rc < 0 ? err_prefix(err, "spec") : 0;
    CLEANUP(str) struct str text = {0};
    str_addf(&text, "spec: %s. The spec is in force once it exists.", err->text);
    (void)json_array_append_new(warnings, json_string(text.at));
    return 0;
}

/* An accepted spec is not checked again: changes of labels or finalizers are always allowed. */
static bool is_unchanged_spec(const json_t *object, const json_t *old)
{
    const json_t *spec = json_object_get(object, "spec"), *was = json_object_get(old, "spec");
    if (json_is_string(json_object_get(json_object_get(object, "metadata"), "deletionTimestamp")))
        return true;
    return json_is_object(old) && spec && was && json_equal(spec, was);
}

static int request_check(const struct admission *j, const json_t *request, int64_t now_ns, json_t *warnings,
                         struct berth_err *err)
{
    const json_t *resource = json_object_get(request, "resource"), *object = json_object_get(request, "object");
    const json_t *old = json_object_get(request, "oldObject");
    const char *operation = text_of(request, "operation"), *plural = text_of(resource, "resource");
    size_t i = 0, count = sizeof resources / sizeof *resources;
    bool writes = strcmp(operation, "CREATE") == 0 || strcmp(operation, "UPDATE") == 0;
    if (strcmp(text_of(resource, "group"), GROUP) != 0 || *text_of(request, "subResource"))
        return 0;
    while (i < count && strcmp(resources[i].plural, plural) != 0)
        i++;
    if (i == count || !writes || !json_is_object(object))
        return admit_with_warning(j, "this request cannot be checked", warnings, err);
    if (is_unchanged_spec(object, old))
        return 0;
    if (!j->ready(j->ctx))
        return admit_with_warning(j, "the scheduler has just started and has not loaded the cluster yet", warnings,
                                  err);
    if (resources[i].kind != KIND_JOB)
        return tenant_object_check(j, resources[i].kind, object, warnings, err);
    const struct admission_request asked = {.object = object,
                                            .old = json_is_object(old) ? old : NULL,
                                            .who = text_of(json_object_get(request, "userInfo"), "username"),
                                            .dry = json_is_true(json_object_get(request, "dryRun"))};
    return admission_check_job(j, &asked, now_ns, warnings, err);
}

int admission_review(const struct admission *j, const json_t *review, int64_t now_ns, enum missing_queue missing,
                     json_t **ret, struct berth_err *err)
{
    const json_t *request = json_object_get(review, "request");
    const char *uid = text_of(request, "uid");
    struct berth_err why = {0};
    if (strcmp(text_of(review, "apiVersion"), REVIEW_VERSION) != 0 ||
        strcmp(text_of(review, "kind"), "AdmissionReview") != 0 || !*uid)
        return err_set(err, EINVAL, "expected an AdmissionReview of " REVIEW_VERSION " with a request that has a uid");
    CLEANUP(json) json_t *warnings = json_array();
    int rc = request_check(j, request, now_ns, warnings, &why);
    if (rc == -ENOENT && missing == MISSING_QUEUE_WAIT)
        return -EAGAIN;
    if (rc == -ENOENT && missing == MISSING_QUEUE_UNSURE)
        rc = admit_with_warning(j, "the scheduler has not seen its queue yet", warnings, &why);
    *ret = answer_of(uid, rc, &why, warnings);
    return 0;
}

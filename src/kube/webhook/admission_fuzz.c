/* admission_fuzz.c - arbitrary JSON is a review that is answered, or no review; the cluster is unchanged afterwards. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "kube/webhook/admission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool ready(void *ctx)
{
    (void)ctx;
    return true;
}

/* One for all inputs, since they leave nothing behind. */
static struct admission admission_new(void)
{
    static const char *const names[] = {"berth"};
    struct admission j = {.tenants = tenants_new(NULL, NULL), .ready = ready};
    json_t *spec = json_pack("{s:{s:{s:i}, s:{s:i}}}", "quota", "limits", "cpu", 8, "admitted", "cpu", 10);
    int rc = tenants_put(j.tenants, KIND_QUEUE, "small", spec, NULL);
    assert(rc == 0);
    (void)rc;
    json_decref(spec);
    j.cache = cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1, .tenants = j.tenants});
    return j;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct admission j;
    struct berth_err err = {0};
    struct berth_quota_use use = {0};
    json_t *answer = NULL, *review = json_loadb((const char *)data, size, 0, NULL);
    if (!j.tenants)
        j = admission_new();
    int rc = review ? admission_review(&j, review, INT64_C(1800000000) * 1000000000, MISSING_QUEUE_DENY, &answer, &err)
                    : -EINVAL;
    assert(rc == -EINVAL || (rc == 0 && json_is_object(json_object_get(answer, "response"))));
    bool there = berth_quota_use(cache_cluster(j.cache), "queue/small", "cpu", &use);
    assert(there && use.asked == 0 && use.held == 0);
    (void)there;
    json_decref(answer);
    json_decref(review);
    return 0;
}

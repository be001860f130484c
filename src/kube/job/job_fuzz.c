/* job_fuzz.c - any object is parsed as a Job or rejected with a message; a parsed job yields pods; any text is parsed
 * as a list of indexes up to its first error.
 */
#include <assert.h>
#include <string.h>

#include "kube/job/job_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void each(void *ctx, const char *role, uint32_t ordinal)
{
    size_t *left = ctx;
    assert(role[0] && ordinal <= KUBE_TASKS_MAX);
    *left -= *left > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct kube_job job;
    struct berth_err err = {0};
    size_t left = 1000000;
    json_t *object = json_loadb((const char *)data, size, 0, NULL);
    arena_init(&arena);
    if (object && kube_job_read(object, &arena, &job, &err) == 0) {
        assert(job.roles_len >= 1 && job.roles_len <= KUBE_ROLES_MAX);
        for (size_t i = 0; i < job.roles_len; i++) {
            const struct kube_job_task task = {.role = i, .ordinal = job.roles[i].tasks - 1, .attempt = 2, .node = "n"};
            json_t *pod = kube_job_pod(&job, i, &task, "berth");
            assert(pod);
            json_decref(pod);
        }
    } else if (object) {
        assert(err.text[0]);
    }
    if (size < 64) {
        char *text = mem_zalloc(size + 1);
        memcpy(text, data, size);
        job_indexes_each(text, each, &left);
        mem_free(text);
    }
    json_decref(object);
    arena_done(&arena);
    return 0;
}

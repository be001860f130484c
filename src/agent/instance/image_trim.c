/* image_trim.c - images that no instance uses any more, kept within their bound. */
#include "agent/agent_parts.h"

static void trim_work(void *ctx)
{
    struct agent *a = ctx;
    images_trim(a->place, a->options->image_mib << 20);
}

static void trim_after(void *ctx)
{
    ((struct agent *)ctx)->trimming = false;
}

/* One that was pulled and has not started yet uses an image that does not look used. */
static bool anything_comes(const struct agent *a)
{
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->phase < RUN_LIVING && json_object_get(a->runs.at[i]->config, "image"))
            return true;
    return false;
}

void trim_images(struct agent *a)
{
    if (a->trimming || anything_comes(a))
        return;
    a->trimming = true;
    worker_run(a->puller, trim_work, trim_after, a); /* whoever comes now pulls after it */
}

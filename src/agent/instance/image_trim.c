/* image_trim.c - removes images that no instance uses, down to the size limit. */
#include "agent/agent_parts.h"

static void trim_work(void *ctx)
{
    struct agent *a = ctx;
    images_trim(a->state_dir, a->options->image_mib << 20);
}

static void trim_after(void *ctx)
{
    ((struct agent *)ctx)->trimming = false;
}

/* Tells whether an instance with an image is being started: its image may be pulled but not marked as used yet. */
static bool anything_comes(const struct agent *a)
{
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->phase < INSTANCE_RUNNING && json_object_get(a->runs.at[i]->config, "image"))
            return true;
    return false;
}

void trim_images(struct agent *a)
{
    if (a->trimming || anything_comes(a))
        return;
    a->trimming = true;
    /* the puller works in order: later instances pull after the trim */
    worker_run(a->puller, trim_work, trim_after, a);
}

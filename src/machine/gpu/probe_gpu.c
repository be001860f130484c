/* probe_gpu.c - converts GPU data for a node's document, its reports and its conditions. */
#include "machine/gpu/probe_gpu.h"

#include <string.h>

#include "machine/probe/probe_parts.h"

#define MIB (INT64_C(1) << 20)
enum { BUSY_STEP = 50 }; /* thousandths; rounding hides noise */

static void condition_add(json_t *to, const char *who, const char *text)
{
    json_t *list = json_object_get(to, "conditions");
    if (!list)
        (void)json_object_set_new(to, "conditions", list = json_array());
    (void)json_array_append_new(list, json_pack("{s:s, s:o}", "type", "GpuFailed", "text",
                                                *who ? json_sprintf("%s: %s", who, text) : json_string(text)));
}

static void text_set(json_t *to, const char *key, const char *text)
{
    if (*text)
        (void)json_object_set_new(to, key, json_string(text));
}

static void number_set(json_t *to, const char *key, int64_t number)
{
    if (number >= 0)
        (void)json_object_set_new(to, key, json_integer(number));
}

/* Maps the UUIDs of other GPUs to the kind of connection. */
static json_t *links_make(const struct nvml_snapshot *look, size_t of)
{
    json_t *links = json_object();
    for (size_t i = 0; i < look->gpus_len; i++)
        text_set(links, look->gpus[i].uuid, nvml_link_name(look->link[of][i]));
    return links;
}

static json_t *gpu_make(const struct nvml_snapshot *look, size_t i)
{
    const struct nvml_gpu *g = &look->gpus[i];
    json_t *gpu = json_pack("{s:s, s:s}", "uuid", g->uuid, "model", g->model);
    if (g->memory_bytes > 0) /* rounded down to whole MiB, as vendors state sizes */
        (void)json_object_set_new(gpu, "memory", probe_amount("memory", g->memory_bytes / MIB * MIB));
    number_set(gpu, "minor", g->minor);
    text_set(gpu, "bus", g->bus);
    text_set(gpu, "parent", g->parent);
    if (g->nvlinks > 0)
        number_set(gpu, "nvlinks", g->nvlinks);
    json_t *links = links_make(look, i);
    if (json_object_size(links))
        (void)json_object_set(gpu, "links", links);
    json_decref(links);
    text_set(gpu, "unhealthy", g->trouble);
    return gpu;
}

json_t *probe_gpus(const struct nvml_snapshot *look)
{
    json_t *doc = json_object();
    if (!look->there)
        return doc;
    json_t *gpus = json_array();
    for (size_t i = 0; i < look->gpus_len; i++)
        if (!look->gpus[i].split)
            (void)json_array_append_new(gpus, gpu_make(look, i));
    (void)json_object_set_new(doc, "gpus", gpus);
    text_set(doc, "gpu_driver", look->driver);
    return doc;
}

void probe_gpus_use(const struct nvml_snapshot *look, json_t *self)
{
    json_t *usage = json_object_get(self, "usage");
    int64_t bytes = 0, milli = 0;
    bool any = false;
    if (*look->trouble)
        condition_add(self, "", look->trouble);
    for (size_t i = 0; i < look->gpus_len; i++) {
        const struct nvml_gpu *g = &look->gpus[i];
        if (*g->trouble && !*g->parent && strcmp(g->trouble, look->trouble) != 0)
            condition_add(self, g->uuid, g->trouble);
        if (*g->parent)
            continue; /* counted with its GPU */
        any = true;
        bytes += g->used_bytes > 0 ? g->used_bytes : 0;
        milli += g->milli > 0 ? g->milli : 0;
    }
    if (!usage || !any)
        return;
    (void)json_object_set_new(usage, "gpu-memory", probe_amount("gpu-memory", probe_round(-1, bytes, MIB)));
    (void)json_object_set_new(usage, "gpu-milli", json_integer(milli / BUSY_STEP * BUSY_STEP));
}

/* work_rules.c - checks workload documents. The state must be able to hold every document that passes. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "control/job/job.h"
#include "control/kind/secret.h"
#include "control/kind/work.h"
#include "control/state/sync.h"
#include "control/tenant/admission.h"
#include "control/tenant/cap.h"
#include "core/model/cluster.h"
#include "core/model/resource_names.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

/* Returns whether the document describes a virtual machine, whatever its kind. */
static bool is_vm(const json_t *doc)
{
    const char *runtime = json_string_value(json_object_get(doc, "runtime"));
    return json_is_object(json_object_get(doc, "vm")) || (runtime && strcmp(runtime, "vm") == 0);
}

/* Rejects keys that belong to another kind. */
static int kind_keys(struct request *c, enum kind kind, const json_t *doc)
{
    static const struct {
        const char *key;
        bool app, job, vm;
        const char *instead;
    } rows[] = {
        {"hold",            false, true,  false, "is only for jobs; use stopped"         },
        {"stopped",         true,  false, true,  "is only for apps and vms; use hold"    },
        {"endpoints",       true,  false, false, "are only for apps and virtual machines"},
        {"settings",        true,  false, true,  "are only for apps and vms"             },
        {"settings_schema", true,  false, true,  "is only for apps and vms"              },
        {"retries",         false, true,  false, "is only for jobs"                      },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool allowed = kind == KIND_APP ? rows[i].app : kind == KIND_JOB ? rows[i].job : rows[i].vm;
        allowed = allowed || (kind == KIND_VM && strcmp(rows[i].key, "endpoints") == 0 && is_vm(doc));
        if (!allowed && json_object_get(doc, rows[i].key))
            return err_set(&c->err, EINVAL, "%s: %s", rows[i].key, rows[i].instead);
    }
    return kind == KIND_JOB ? 0 : job_refuse_keys(c, doc);
}

/* A volume that the caller may not see is reported as missing. Reading the volume guards against its deletion. */
static int volumes_check(struct request *c, const struct berth_shape *shape)
{
    for (size_t i = 0; i < shape->volumes_len; i++) {
        char quoted[QUOTE_MAX];
        const char *id = shape->volumes[i];
        const struct object *o = state_find(c->state, KIND_VOLUME, id);
        const json_t *doc = change_read(&c->change, KIND_VOLUME, id);
        if (!doc || (o && !request_may_see(c, o)))
            return err_set(&c->err, EINVAL,
                           "volumes[%zu]: there is no volume %s; create one with 'berth apply -f' ('kind: volume')", i,
                           quote(id, quoted));
    }
    return 0;
}

/* Returns the parts that give a workload access to the node itself. Users that may change the workload may use what it
 * already has of these; adding some needs the permission over nodes. */
static json_t *node_access_of(const json_t *doc)
{
    static const char *const vm_files[] = {"kernel", "initrd"};
    json_t *found = json_pack("{s:[]}", "binds");
    const json_t *mounts = json_object_get(doc, "mounts"), *rootfs = json_object_get(doc, "rootfs");
    const char *image = json_string_value(json_object_get(doc, "image"));
    bool alone = json_is_object(mounts);
    if (rootfs)
        (void)json_object_set(found, "rootfs", (json_t *)rootfs);
    if (image && (strncmp(image, "oci:", 4) == 0 || *image == '/')) /* a folder or a file of the node, too */
        (void)json_object_set_new(found, "image", json_string(image));
    for (size_t i = 0; i < sizeof vm_files / sizeof *vm_files; i++) {
        json_t *file = json_object_get(json_object_get(doc, "vm"), vm_files[i]);
        if (file)
            (void)json_object_set(found, vm_files[i], file);
    }
    for (size_t i = 0; i < (alone ? 1 : json_array_size(mounts)); i++) {
        json_t *mount = alone ? (json_t *)mounts : json_array_get(mounts, i);
        if (json_object_get(mount, "bind"))
            (void)json_array_append(json_object_get(found, "binds"), mount);
    }
    return found;
}

static int node_check(struct request *c, const json_t *old, const json_t *doc)
{
    CLEANUP(json) json_t *wants = node_access_of(doc);
    const char *what = json_object_get(wants, "rootfs")                       ? "rootfs"
                       : json_object_get(wants, "image")                      ? "image"
                       : json_object_get(wants, "kernel")                     ? "vm: kernel"
                       : json_object_get(wants, "initrd")                     ? "vm: initrd"
                       : json_array_size(json_object_get(wants, "binds")) > 0 ? "mounts"
                                                                              : NULL;
    if (!what || permit(&c->caller, PERMIT_NODES, "", ""))
        return 0;
    CLEANUP(json) json_t *had = old ? node_access_of(old) : NULL;
    if (had && json_equal(had, wants))
        return 0;
    return err_set(&c->err, EACCES, "%s: %s of a node need the permission 'nodes: all'; %s", what,
                   is_vm(doc) ? "files" : "folders", is_vm(doc) ? "give a URL as the image" : "mount a volume instead");
}

static int64_t request_of(const struct berth_shape *shape, const char *resource)
{
    for (size_t i = 0; i < shape->requests_len; i++)
        if (strcmp(shape->requests[i].resource, resource) == 0)
            return shape->requests[i].amount;
    return 0;
}

static bool member_same(const json_t *old, const json_t *doc, const char *key, const char *resource)
{
    const json_t *was = json_object_get(json_object_get(old, key), resource);
    const json_t *is = json_object_get(json_object_get(doc, key), resource);
    return was ? is && json_equal((json_t *)was, (json_t *)is) : !is;
}

/* Huge pages cannot be overcommitted, so their limit must equal the request, as in Kubernetes. A document of an earlier
 * version may have another limit and keep it; agents enforce the request. */
static int pages_check(struct request *c, const json_t *old, const json_t *doc, const struct berth_shape *shape)
{
    for (size_t i = 0; i < shape->limits_len; i++) {
        const struct berth_limit *l = &shape->limits[i];
        char asked[QUANTITY_TEXT_MAX];
        int64_t request = request_of(shape, l->resource);
        bool kept =
            old && member_same(old, doc, "limits", l->resource) && member_same(old, doc, "requests", l->resource);
        if (describe_page_size(l->resource) <= 0 || kept ||
            (l->kind == BERTH_ABSOLUTE && l->amount == request && l->max <= request))
            continue;
        return err_set(&c->err, EINVAL,
                       "limits: %s: a limit of huge pages must equal the request, which is %s; leave the limit out",
                       l->resource, quantity_print(l->resource, request, asked));
    }
    return 0;
}

static int policy_check(struct request *c, enum kind kind, const struct work_run *run)
{
    if (kind == KIND_JOB && run->restart_policy == RESTART_ALWAYS)
        return err_set(&c->err, EINVAL,
                       "restart_policy: expected on-failure or never for a job; only apps run "
                       "forever");
    if (run->restart_policy == RESTART_NEVER && run->retries > 0)
        return err_set(&c->err, EINVAL, "retries: not allowed with the restart_policy never");
    return 0;
}

static int core_check(struct request *c, enum kind kind, const char *id, const struct work_doc *d)
{
    struct berth_workload w = d->workload;
    const struct object draft = {.kind = kind, .id = id, .owner = "", .group = ""};
    w.id = id;
    w.kind = kind == KIND_APP ? BERTH_SERVICE : kind == KIND_JOB ? BERTH_JOB : BERTH_VM;
    w.shape.volumes_len = 0; /* a volume that this transaction creates is not in the cluster yet */
    sync_scheduling(c->state, &draft, d, &c->arena, &w);
    int rc = describe_workload(state_cluster(c->state), &w, &c->err);
    if (rc == 0)
        rc = cap_names_check(c, resource_names_new_of_workload(state_cluster(c->state), &w));
    if (rc == 0 && !c->dry_run)
        resource_names_of_workload(state_cluster(c->state), &w);
    return rc;
}

static int settings_of(struct request *c, const struct work_doc *d)
{
    CLEANUP(json) json_t *filled = NULL;
    int rc = d->settings_schema ? settings_schema_check(d->settings_schema, &c->err) : 0;
    if (rc < 0)
        return err_prefix(&c->err, "settings_schema");
    rc = settings_check(d->settings_schema, d->settings, &filled, &c->err);
    return rc < 0 ? err_prefix(&c->err, "settings") : 0;
}

/* Returns whether a node has GPUs of this model; ignores case. */
static bool has_gpu_model(const struct berth_cluster *cluster, const char *model)
{
    const char *known;
    for (size_t i = 0; (known = berth_gpu_model_at(cluster, i)); i++)
        if (strcasecmp(known, model) == 0)
            return true;
    return false;
}

/* Returns, for example, "H200 or B200". */
static const char *models_text(struct request *c, const char *const *models, size_t len)
{
    const char *text = "";
    for (size_t i = 0; i < len; i++)
        text = arena_fmt(&c->arena, "%s%s%s", text, i == 0 ? "" : i + 1 < len ? ", " : " or ", models[i]);
    return text;
}

/* Warns about a workload that names only GPU models that no node has: it is accepted, because such a node may be added,
 * but does not start until then. */
static void models_warn(struct request *c, const struct berth_gpu_need *gpu)
{
    enum { TOLD_MAX = 8 };
    const struct berth_cluster *cluster = state_cluster(c->state);
    const char *there[TOLD_MAX];
    size_t len = 0;
    for (size_t i = 0; i < gpu->models_len; i++)
        if (has_gpu_model(cluster, gpu->models[i]))
            return;
    while (len < TOLD_MAX && (there[len] = berth_gpu_model_at(cluster, len)))
        len++;
    if (!gpu->models_len || !gpu->count)
        return;
    const char *asked = models_text(c, gpu->models, gpu->models_len), *others = models_text(c, there, len);
    request_warn(
        c, arena_fmt(&c->arena, "no node has a GPU of model %s%s%s", asked, len ? "; available models: " : "", others));
}

int work_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct work_doc d;
    int rc = kind_keys(c, k->kind, doc);
    if (rc == 0)
        rc = work_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = vm_check(&d, &c->err);
    if (rc == 0)
        rc = core_check(c, k->kind, id, &d);
    if (rc == 0)
        rc = volumes_check(c, &d.workload.shape);
    if (rc == 0)
        rc = pages_check(c, old, doc, &d.workload.shape);
    if (rc == 0)
        rc = policy_check(c, k->kind, &d.run);
    if (rc == 0)
        rc = node_check(c, old, doc);
    if (rc == 0)
        rc = secrets_check(c, doc, &d.run);
    if (rc == 0)
        rc = settings_of(c, &d);
    if (rc == 0)
        rc = admit_check(c, k->kind, id, old, doc, &d);
    if (rc == 0 && k->kind == KIND_JOB)
        rc = job_check(c, id, old, doc, &d);
    if (rc == 0)
        models_warn(c, &d.workload.shape.gpu);
    if (rc < 0 || old || k->kind == KIND_JOB)
        return rc;
    enum kind other = k->kind == KIND_APP ? KIND_VM : KIND_APP;
    if (change_read(&c->change, other, id))
        return err_set(&c->err, EEXIST, "%s %s already exists; an app and a vm cannot have the same name",
                       kinds[other].name, id);
    return 0;
}

/* cluster_file.c - reads the lists of a cluster file, entry by entry, into a cluster. */
#include "wire/cluster/cluster_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "wire/doc/objects.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { SCRATCH_MAX = 4 * 1024 * 1024, PROGRESS_EVERY = 1024 };

struct cluster_file_load {
    struct cluster_file *file;
    struct reader reader;
    struct arena scratch; /* memory of the current entry */
    struct berth_err *err;
    cluster_file_progress *progress;
    void *progress_ctx;
    size_t done, total, nodes, workloads;
    /* Names seen in the current list, and the index of the entry of each. */
    struct intern names;
    VEC(size_t) entries;
};

/* One list of the file, with the function that reads and adds an entry. */
struct file_section {
    const char *name;
    const char *id_key;
    int (*put)(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value);
    size_t at; /* offset of the list in struct file_top */
};

/* ---- the whole file ---------------------------------------------------------------------------------------------- */

struct file_top {
    int64_t version, now_ns;
    uint64_t seed;
    const json_t *resources, *profiles, *nodes, *volumes, *workloads, *instances, *facts;
};

#define AT(field) offsetof(struct file_top, field)
static const struct key top_rows[] = {
    KEY("version", "1", "version of the format; default: 1", i64_read, .at = AT(version)),
    KEY("now", "time", "the time to plan for; default: 0", time_read, .at = AT(now_ns)),
    KEY("seed", "whole number", "random seed; default: 0", u64_read, .at = AT(seed)),
    KEY("resources", "list of [resource](#resource)", "cumulative resources; others need no definition", raw_read,
        .at = AT(resources)),
    KEY("profiles", "list of [profile](#profile)", "named sets of filters and scores", raw_read, .at = AT(profiles)),
    KEY("nodes", "list of [node](#node)", "the nodes", raw_read, .at = AT(nodes)),
    KEY("volumes", "list of [volume](#volume)", "volumes that pods can mount", raw_read, .at = AT(volumes)),
    KEY("workloads", "list of [workload](#workload)", "services, jobs and virtual machines", raw_read,
        .at = AT(workloads)),
    KEY("instances", "list of [instance](#instance)", "existing instances", raw_read, .at = AT(instances)),
    KEY("facts", "list of [fact](#fact)", "facts recorded by earlier plans", raw_read, .at = AT(facts)),
};
#undef AT
static KEY_TABLE(top_keys, "the file", top_rows);

/* ---- entries ----------------------------------------------------------------------------------------------------- */

/* Prepends the entry with the error: `nodes[3] "web": ...`. */
static int in_entry(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value, int rc)
{
    const json_t *id = json_object_get(value, s->id_key);
    char buf[QUOTE_MAX];
    if (json_is_string(id))
        (void)err_prefix(l->err, "%s[%zu] %s", s->name, i, quote(json_string_value(id), buf));
    else if (json_is_integer(id))
        (void)err_prefix(l->err, "%s[%zu] %" JSON_INTEGER_FORMAT, s->name, i, json_integer_value(id));
    else
        (void)err_prefix(l->err, "%s[%zu]", s->name, i);
    return rc;
}

/* Rejects a name that an earlier entry of the list has, because in the model the later entry would silently replace the
 * earlier one. */
static int name_check_unique(struct cluster_file_load *l, const struct file_section *s, size_t i, const char *name)
{
    sym known = intern_find(&l->names, name);
    if (known != MAP_NONE && known < l->entries.len) {
        char buf[QUOTE_MAX];
        return err_set(l->err, EEXIST, "%s[%zu] %s: the %s is already used by %s[%zu]", s->name, i, quote(name, buf),
                       s->id_key, s->name, l->entries.at[known]);
    }
    sym fresh = intern_put(&l->names, name);
    vec_resize(&l->entries, (size_t)fresh + 1);
    l->entries.at[fresh] = i;
    return 0;
}

static void count_done(struct cluster_file_load *l)
{
    l->done++;
    if (l->progress && (l->done % PROGRESS_EVERY == 0 || l->done == l->total))
        l->progress(l->progress_ctx, l->done, l->total);
}

static int resource_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct berth_resource resource;
    int rc = resource_entry_read(&l->reader, value, &resource);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    rc = name_check_unique(l, s, i, resource.name);
    return rc < 0 ? rc : berth_resource_put(l->file->cluster, &resource, l->err);
}

static int volume_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct berth_volume volume;
    int rc = volume_entry_read(&l->reader, value, &volume);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    rc = name_check_unique(l, s, i, volume.id);
    return rc < 0 ? rc : berth_volume_put(l->file->cluster, &volume, l->err);
}

/* Returns the number of objects of an entry; 0 with *rc set if there are too many. */
static uint32_t copies(struct cluster_file_load *l, const struct file_section *s, size_t i, uint32_t count, size_t max,
                       size_t *made, int *rc)
{
    uint32_t wanted = count == NO_COUNT ? 1 : count;
    if (wanted > max - *made) {
        *rc = err_set(l->err, E2BIG, "%s[%zu]: count: more than %zu %s in all", s->name, i, max, s->name);
        return 0;
    }
    *made += wanted;
    return wanted;
}

static const char *copy_id(struct cluster_file_load *l, const char *id, uint32_t count, uint32_t n)
{
    return count == NO_COUNT ? id : arena_fmt(&l->scratch, "%s-%" PRIu32, id, n + 1);
}

static int node_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct node_entry entry;
    int rc = node_entry_read(&l->reader, value, &entry);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    uint32_t len = copies(l, s, i, entry.count, CLUSTER_FILE_NODES_MAX, &l->nodes, &rc);
    for (uint32_t n = 0; rc == 0 && n < len; n++) {
        struct berth_node node = entry.node;
        node.id = copy_id(l, entry.node.id, entry.count, n);
        rc = name_check_unique(l, s, i, node.id);
        if (rc == 0)
            rc = berth_node_put(l->file->cluster, &node, l->err);
        count_done(l);
    }
    return rc;
}

static int workload_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct workload_entry entry;
    int rc = workload_entry_read(&l->reader, value, &entry);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    uint32_t len = copies(l, s, i, entry.count, CLUSTER_FILE_WORKLOADS_MAX, &l->workloads, &rc);
    for (uint32_t n = 0; rc == 0 && n < len; n++) {
        struct berth_workload workload = entry.workload;
        workload.id = copy_id(l, entry.workload.id, entry.count, n);
        if (entry.gang_alone)
            workload.gang = workload.id;
        rc = name_check_unique(l, s, i, workload.id);
        if (rc == 0)
            rc = berth_workload_put(l->file->cluster, &workload, l->err);
        count_done(l);
    }
    return rc;
}

static int instance_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct berth_instance instance;
    int rc = instance_entry_read(&l->reader, value, &instance);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    rc = name_check_unique(l, s, i, arena_fmt(&l->scratch, "%" PRIu64, instance.id));
    if (rc == 0)
        rc = berth_instance_put(l->file->cluster, &instance, l->err);
    count_done(l);
    return rc;
}

static int fact_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct berth_fact fact;
    int rc = fact_entry_read(&l->reader, value, &fact);
    if (rc == 0)
        rc = berth_fact_put(l->file->cluster, &fact, l->err);
    return rc < 0 ? in_entry(l, s, i, value, rc) : 0;
}

/* The strings are copied, because profiles outlive the document. */
static int profile_put(struct cluster_file_load *l, const struct file_section *s, size_t i, const json_t *value)
{
    struct reader r;
    reader_init(&r, &l->file->arena, l->err);
    r.copy_text = true;
    struct berth_profile profile;
    int rc = profile_entry_read(&r, value, &profile);
    if (rc < 0)
        return in_entry(l, s, i, value, rc);
    rc = name_check_unique(l, s, i, profile.name);
    if (rc == 0)
        ((struct berth_profile *)l->file->profiles)[l->file->profiles_len++] = profile;
    return rc;
}

/* Each list may refer to the lists before it. */
#define AT(field) offsetof(struct file_top, field)
static const struct file_section sections[] = {
    {"profiles",  "name", profile_put,  AT(profiles) },
    {"resources", "name", resource_put, AT(resources)},
    {"nodes",     "id",   node_put,     AT(nodes)    },
    {"volumes",   "id",   volume_put,   AT(volumes)  },
    {"workloads", "id",   workload_put, AT(workloads)},
    {"instances", "id",   instance_put, AT(instances)},
    {"facts",     "kind", fact_put,     AT(facts)    },
};
#undef AT
static const size_t sections_len = sizeof sections / sizeof *sections;

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static int section_read(struct cluster_file_load *l, const struct file_section *s, const json_t *list)
{
    int rc = 0;
    if (!json_is_array(list))
        return in_member(&l->reader, s->name, expected(&l->reader, "a list", list));
    intern_init(&l->names);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        l->reader.item = SIZE_MAX;
        rc = s->put(l, s, i, json_array_get(list, i));
        if (l->scratch.bytes > SCRATCH_MAX)
            arena_done(&l->scratch);
    }
    intern_done(&l->names);
    vec_done(&l->entries);
    return rc;
}

/* Counts the objects of a list, for the progress bar. */
static size_t objects_of(const json_t *list)
{
    size_t total = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *count = json_object_get(json_array_get(list, i), "count");
        json_int_t n = json_is_integer(count) ? json_integer_value(count) : 1;
        total += n > 0 && n < UINT32_MAX ? (size_t)n : 0;
    }
    return total;
}

static int load_all(struct cluster_file_load *l, const json_t *doc)
{
    struct file_top top = {.version = CLUSTER_FILE_VERSION};
    int rc = table_read(&l->reader, doc, &top_keys, &top);
    if (rc < 0)
        return rc;
    if (top.version != CLUSTER_FILE_VERSION)
        return err_set(l->err, ENOTSUP, "version: %" PRId64 " is not supported; expected version %d", top.version,
                       CLUSTER_FILE_VERSION);
    l->file->now_ns = top.now_ns;
    l->file->seed = top.seed;
    l->total = objects_of(top.nodes) + objects_of(top.workloads) + json_array_size(top.instances);
    if (json_array_size(top.profiles))
        l->file->profiles = ARENA_ARRAY(&l->file->arena, struct berth_profile, json_array_size(top.profiles));
    for (size_t i = 0; i < sections_len && rc == 0; i++) {
        const json_t *list;
        memcpy(&list, (const char *)&top + sections[i].at, sizeof list);
        if (list)
            rc = section_read(l, &sections[i], list);
    }
    return rc;
}

int cluster_file_parse(const json_t *doc, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                       struct berth_err *err)
{
    struct berth_err unheard;
    struct cluster_file file = {.cluster = berth_cluster_new()};
    struct cluster_file_load l = {
        .file = &file, .err = err ? err : &unheard, .progress = progress, .progress_ctx = ctx};
    arena_init(&file.arena);
    arena_init(&l.scratch);
    reader_init(&l.reader, &l.scratch, l.err);

    int rc = load_all(&l, doc);
    arena_done(&l.scratch);
    if (rc < 0)
        cluster_file_done(&file);
    else
        *ret = file;
    return rc;
}

int cluster_file_read(const char *path, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                      struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    int rc = document_read(path, &doc, err);
    if (rc < 0)
        return rc;
    rc = cluster_file_parse(doc, progress, ctx, ret, err);
    if (rc < 0)
        (void)err_prefix(err, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
    return rc;
}

void cluster_file_done(struct cluster_file *f)
{
    berth_cluster_free(f->cluster);
    arena_done(&f->arena);
    *f = (struct cluster_file){0};
}

const struct berth_profile *cluster_file_profile(const struct cluster_file *f, const char *name)
{
    for (size_t i = 0; i < f->profiles_len; i++)
        if (strcmp(f->profiles[i].name, name) == 0)
            return &f->profiles[i];
    return berth_profile_find(name);
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

void cluster_file_keys_print(FILE *to)
{
    static const struct key_table *const tables[] = {
        &top_keys,       &node_keys,       &gpu_keys,        &image_keys,      &taint_keys,    &port_keys,
        &volume_keys,    &resource_keys,   &workload_keys,   &shape_keys,      &gpu_need_keys, &limit_keys,
        &condition_keys, &expression_keys, &preference_keys, &toleration_keys, &spread_keys,   &near_keys,
        &instance_keys,  &usage_keys,      &fact_keys,       &profile_keys,
    };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        (void)fprintf(to, "%s### %s\n\n| key | value | |\n|---|---|---|\n", t ? "\n" : "", tables[t]->name);
        for (size_t i = 0; i < tables[t]->len; i++) {
            const struct key *key = &tables[t]->keys[i];
            (void)fprintf(to, "| `%s` | %s | %s |\n", key->name, key->form, key->help);
        }
    }
}

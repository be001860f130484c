/* job_name.c - detects two jobs of a namespace with equal pod names (JOB-ROLE-INDEX and JOB-ROLE-INDEX-ATTEMPT).
 *
 * Of two such jobs, the one accepted first goes on. The other reports why it is not accepted and is checked again from
 * time to time.
 */
#include <string.h>

#include "base/hash.h"
#include "kube/job/job_internal.h"

struct stem_query {
    const struct job_entry *job;
    const char *stem; /* "namespace:job-role" */
};

static uint64_t stem_hash(const char *stem)
{
    return hash_bytes(stem, strlen(stem), 0);
}

static bool is_accepted(const struct job_entry *j)
{
    return j->roles.len > 0 && j->roles.at[0].shaped;
}

/* Reports whether `a` keeps its names in a conflict with `b`. */
static bool name_has_priority(const struct job_entry *a, const struct job_entry *b)
{
    if (is_accepted(a) != is_accepted(b))
        return is_accepted(a);
    if (a->spec.created_ns != b->spec.created_ns)
        return a->spec.created_ns < b->spec.created_ns;
    return strcmp(a->uid, b->uid) < 0;
}

static bool stem_same(const void *ctx, uint32_t value, const void *key)
{
    const struct job_stem *s = &((const struct kube_jobs *)ctx)->stems.at[value];
    const struct stem_query *l = key;
    return s->job != l->job && strcmp(s->text, l->stem) == 0 && name_has_priority(s->job, l->job);
}

/* Returns the stem of a role of another job that equals `stem` and goes before; NULL: none. */
static const struct job_stem *other_find(const struct job_entry *j, const char *stem)
{
    const struct kube_jobs *k = j->k;
    const struct stem_query l = {j, stem};
    uint32_t i = map_find(&k->stems_by_text, stem_hash(stem), stem_same, k, &l);
    return i == MAP_NONE ? NULL : &k->stems.at[i];
}

void job_stem_add(struct job_entry *j, struct job_role *role, const char *name)
{
    struct kube_jobs *k = j->k;
    CLEANUP(str) struct str text = {0};
    str_addf(&text, "%s-%s", j->key, name);
    if (k->stems_free.len) {
        role->stem = k->stems_free.at[--k->stems_free.len];
    } else {
        role->stem = (uint32_t)k->stems.len;
        vec_push(&k->stems, (struct job_stem){0});
    }
    map_add(&k->stems_by_text, stem_hash(text.at), role->stem);
    k->stems.at[role->stem] = (struct job_stem){str_take(&text), j};
}

void job_stem_drop(struct job_entry *j, const struct job_role *role)
{
    struct kube_jobs *k = j->k;
    struct job_stem *s = &k->stems.at[role->stem];
    map_drop(&k->stems_by_text, stem_hash(s->text), role->stem);
    mem_free(s->text);
    *s = (struct job_stem){0};
    vec_push(&k->stems_free, role->stem);
}

void job_stems_done(struct kube_jobs *k)
{
    vec_done(&k->stems);
    vec_done(&k->stems_free);
    map_done(&k->stems_by_text);
}

/* Returns the role of the job that has this stem. */
static const struct kube_job_role *role_of(const struct job_stem *s)
{
    for (size_t i = 0; i < s->job->roles.len; i++)
        if (strcmp(s->job->k->stems.at[s->job->roles.at[i].stem].text, s->text) == 0)
            return &s->job->spec.roles[i];
    return NULL;
}

/* For a role whose name ends in a number: finds a role whose later attempts would have the names of its pods. */
static const struct job_stem *parent_find(const struct job_entry *j, size_t r)
{
    CLEANUP(str) struct str stem = {0};
    str_add(&stem, j->k->stems.at[j->roles.at[r].stem].text);
    char *last = strrchr(stem.at, '-');
    *last = 0;
    const struct job_stem *s = other_find(j, stem.at);
    const struct kube_job_role *role = s ? role_of(s) : NULL;
    return role && kube_job_names_conflict(j->spec.roles[r].tasks, last + 1, s->job->spec.retries, role->tasks) ? s
                                                                                                                : NULL;
}

/* The reverse: finds a role whose pod names are those of later attempts of this role. */
static const struct job_stem *child_find(const struct job_entry *j, size_t r)
{
    CLEANUP(str) struct str stem = {0};
    char buf[24];
    for (uint32_t t = 0; j->spec.retries > 0 && t < j->spec.roles[r].tasks; t++) {
        const char *task = str_u64(t, buf);
        str_clear(&stem);
        str_addf(&stem, "%s-%s", j->k->stems.at[j->roles.at[r].stem].text, task);
        const struct job_stem *s = other_find(j, stem.at);
        const struct kube_job_role *role = s ? role_of(s) : NULL;
        if (role && kube_job_names_conflict(role->tasks, task, j->spec.retries, j->spec.roles[r].tasks))
            return s;
    }
    return NULL;
}

bool job_name_taken(const struct job_entry *j, struct str *why)
{
    for (size_t r = 0; r < j->roles.len; r++) {
        const struct job_stem *s = other_find(j, j->k->stems.at[j->roles.at[r].stem].text);
        s = s ? s : parent_find(j, r);
        s = s ? s : child_find(j, r);
        if (!s)
            continue;
        const struct kube_job_role *role = role_of(s);
        str_addf(why,
                 "role %s: its pods would have the same names as those of role %s of the earlier job %s; rename the "
                 "job or the role",
                 j->spec.roles[r].name, role ? role->name : "", s->job->spec.name);
        return true;
    }
    return false;
}

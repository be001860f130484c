/* work_verbs.c - verbs on existing apps, jobs and VMs: start, stop, restart, scale, settings. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/kind/work.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

int work_edit(struct request *c, const struct crud *k, const char *verb, crud_edit_fn *edit, const void *arg)
{
    const char *id = NULL;
    const json_t *old = crud_open(c, k->kind, c->args[0], k->change, &id);
    if (!old)
        return -c->err.code;
    int rc = work_refuse_system(c, id, old);
    if (rc == 0)
        rc = crud_edit(c, k, k->change, edit, arg);
    if (rc < 0)
        return rc;
    crud_name(c, k->kind, id, verb);
    return crud_answer(c, k->kind, id, false);
}

/* A flag is either true or absent. */
static void flag_set(json_t *doc, const char *key, bool value)
{
    if (value)
        (void)json_object_set_new(doc, key, json_true());
    else
        (void)json_object_del(doc, key);
}

int work_start(struct request *c, const char *id, json_t *doc, const void *arg)
{
    (void)arg;
    static const char *const over[] = {"stopped", "failed", "ended", "outcome", "error"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        (void)json_object_del(doc, over[i]);
    work_clear_failures(c, id);
    return 0;
}

int work_stop(struct request *c, const char *id, json_t *doc, const void *arg)
{
    (void)c;
    (void)id;
    (void)arg;
    flag_set(doc, "stopped", true);
    return 0;
}

int work_restart(struct request *c, const char *id, json_t *doc, const void *arg)
{
    (void)arg;
    static const char *const over[] = {"stopped", "failed", "ended"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (json_is_true(json_object_get(doc, over[i])))
            return err_set(&c->err, EBUSY, "%s %s; start it instead", id,
                           i == 0   ? "is stopped"
                           : i == 1 ? "has failed"
                                    : "has ended");
    json_int_t restarts = json_integer_value(json_object_get(doc, "restart"));
    (void)json_object_set_new(doc, "restart", json_integer(restarts + 1));
    return 0;
}

struct scale_args {
    uint32_t replicas;
    bool said;
};

static int replicas_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    ((struct scale_args *)object)->said = true;
    return u32_read(r, key, value, object);
}

static const struct key scale_rows[] = {
    KEY("replicas", "whole number", "the number of replicas", replicas_read,
        .at = offsetof(struct scale_args, replicas)),
};
KEY_TABLE(scale_keys, "scale", scale_rows);

int work_scale(struct request *c, const char *id, json_t *doc, const void *arg)
{
    struct scale_args scaling = {0};
    struct reader r;
    (void)id;
    (void)arg;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &scale_keys, &scaling);
    if (rc == 0 && !scaling.said)
        rc = missing(&r, "replicas");
    if (rc == 0)
        (void)json_object_set_new(doc, "replicas", json_integer(scaling.replicas));
    return rc;
}

/* ---- settings and install configuration ------------------------------------------------------------------------- */

int work_put_map(struct request *c, const char *id, json_t *doc, const void *arg)
{
    (void)id;
    const char *key = arg;
    (void)json_object_set_new(doc, key, json_deep_copy(c->body));
    return 0;
}

/* One level deep: settings are plain values. */
int work_patch_map(struct request *c, const char *id, json_t *doc, const void *arg)
{
    (void)id;
    const char *key = arg, *name;
    json_t *value, *into = json_object_get(doc, key);
    if (!into)
        (void)json_object_set_new(doc, key, into = json_object());
    json_object_foreach((json_t *)c->body, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(into, name);
        else
            (void)json_object_set_new(into, name, json_deep_copy(value));
    }
    return 0;
}

int work_show_settings(struct request *c, const json_t *doc)
{
    json_t *filled = NULL;
    int rc =
        settings_check(json_object_get(doc, "settings_schema"), json_object_get(doc, "settings"), &filled, &c->err);
    if (rc < 0)
        return rc;
    c->answer.body = filled;
    c->answer.revision = state_revision(c->state);
    return 0;
}

int app_get_settings(struct request *c)
{
    const char *id = NULL;
    const json_t *doc = crud_open(c, KIND_APP, c->args[0], PERMIT_READ, &id);
    return doc ? work_show_settings(c, doc) : -c->err.code;
}

int app_get_install(struct request *c)
{
    const char *id = NULL;
    const json_t *doc = crud_open(c, KIND_APP, c->args[0], PERMIT_MANAGE, &id);
    if (!doc)
        return -c->err.code;
    json_t *install = json_object_get(doc, "install");
    c->answer.body = install ? json_deep_copy(install) : json_object();
    c->answer.revision = state_revision(c->state);
    return 0;
}

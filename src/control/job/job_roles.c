/* job_roles.c - submission of jobs: one job, or one for each role of a set that starts together. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "control/job/job.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

/* Makes the document of one role: the body without its roles, overlaid with the role's keys. Its name is the role. */
static int role_doc(struct request *c, const json_t *roles, size_t i, json_t **ret)
{
    const json_t *role = json_array_get(roles, i);
    const char *name = json_string_value(json_object_get(role, "name")), *key;
    json_t *value;
    if (!json_is_object(role))
        return err_set(&c->err, EINVAL, "roles[%zu]: expected an object like {name: worker, replicas: 4}", i);
    if (!name || !*name)
        return err_set(&c->err, EINVAL, "roles[%zu]: name: missing", i);
    if (json_object_get(role, "array") || json_object_get(role, "roles") || json_object_get(role, "gang"))
        return err_set(&c->err, EINVAL, "roles[%zu]: array, gang and roles are not allowed in a role", i);
    for (size_t j = 0; j < i; j++)
        if (strcmp(json_string_value(json_object_get(json_array_get(roles, j), "name")), name) == 0)
            return err_set(&c->err, EINVAL, "roles[%zu]: name: %.80s is listed twice", i, name);
    json_t *doc = json_deep_copy(c->body);
    (void)json_object_del(doc, "roles");
    json_object_foreach((json_t *)role, key, value)(void) json_object_set(doc, key, value);
    (void)json_object_set_new(doc, "role", json_string(name));
    const char *set = json_string_value(json_object_get(c->body, "name"));
    if (set) /* the name that users see is the set's */
        (void)json_object_set_new(doc, "name", json_string(set));
    *ret = doc;
    return 0;
}

static int submit_role(struct request *c, const json_t *roles, size_t i, json_t *ids)
{
    CLEANUP(json) json_t *doc = NULL;
    const char *id = NULL;
    bool is_new = false;
    int rc = role_doc(c, roles, i, &doc);
    if (rc == 0 && (rc = crud_put(c, &job_crud, NULL, doc, CRUD_CREATE, &id, &is_new)) < 0)
        return err_prefix(&c->err, "roles[%zu]", i);
    if (rc < 0)
        return rc;
    (void)json_array_append_new(ids, crud_id_value(KIND_JOB, id));
    json_t *made = change_edit(&c->change, KIND_JOB, id);
    (void)json_object_set(made, "of", json_array_get(ids, 0));
    return 0;
}

int job_submit(struct request *c)
{
    const json_t *roles = json_object_get(c->body, "roles");
    if (!roles || json_is_null(roles))
        return crud_create(c, &job_crud);
    size_t len = json_array_size(roles);
    if (!json_is_array(roles) || len == 0 || len > ROLES_MAX)
        return err_set(&c->err, EINVAL, "roles: expected a list of 1 to %d roles", ROLES_MAX);
    if (json_object_get(c->body, "array") || json_object_get(c->body, "gang"))
        return err_set(&c->err, EINVAL, "%s: not allowed with roles, which always start together",
                       json_object_get(c->body, "array") ? "array" : "gang");
    CLEANUP(json) json_t *ids = json_array();
    for (size_t i = 0; i < len; i++) {
        int rc = submit_role(c, roles, i, ids);
        if (rc < 0)
            return rc;
    }
    char first[24];
    str_u64((uint64_t)json_integer_value(json_array_get(ids, 0)), first);
    int rc = crud_answer(c, KIND_JOB, first, true);
    if (rc == 0)
        (void)json_object_set(c->answer.body, "ids", ids);
    return rc;
}

/* mount_plan.c - parses mounts, files and settings of an instance's configuration. */
#include "machine/mount/mount_plan.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "wire/text/quantity.h"

/* ---- texts and paths -------------------------------------------------------------------------------------------- */

/* Returns a text; NULL: missing, empty or with an embedded NUL. */
static const char *text_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    return text && *text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool has(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}

/* Returns the path without repeated and trailing slashes, allocated from the arena; NULL: invalid path. */
static const char *path_clean(const char *path, struct arena *arena)
{
    if (!path || path[0] != '/' || strlen(path) >= PATH_MAX)
        return NULL;
    char *clean = arena_alloc(arena, strlen(path) + 1), *to = clean;
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if (len == 0)
            break;
        if (len > NAME_MAX || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return NULL;
        *to++ = '/';
        memcpy(to, at, len);
        to += len;
        at += len;
    }
    *to = '\0';
    return to == clean ? NULL : clean;
}

static bool is_within(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static int target_read(const json_t *object, const char *what, size_t i, struct arena *arena, const char **ret,
                       struct berth_err *err)
{
    static const char *const taken[] = {"/proc", "/sys", "/dev", SETTINGS_FOLDER};
    const char *text = text_in(object, "path"), *path = path_clean(text, arena);
    if (!path)
        return err_set(err, EINVAL, "%s[%zu]: path: expected an absolute path without \"..\", found %s", what, i,
                       text ? text : "none");
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
        if (is_within(path, taken[k]) && !is_within(path, "/dev/shm"))
            return err_set(err, EINVAL, "%s[%zu]: path: %s is reserved: choose one outside %s", what, i, path,
                           taken[k]);
    *ret = path;
    return 0;
}

/* ---- mounts ----------------------------------------------------------------------------------------------------- */

static bool volume_valid(const char *name)
{
    return name && name[0] != '.' && !strchr(name, '/') && strlen(name) <= 128;
}

static int source_read(const json_t *object, const char *key, size_t i, struct arena *arena, const char **ret,
                       struct berth_err *err)
{
    const char *path = path_clean(text_in(object, key), arena);
    if (!path)
        return err_set(err, EINVAL,
                       "mounts[%zu]: %s: expected an absolute path of the node without \"..\", and not / itself", i,
                       key);
    *ret = path;
    return 0;
}

static int mount_read(const json_t *object, size_t i, struct arena *arena, struct plan_mount *ret,
                      struct berth_err *err)
{
    int rc = target_read(object, "mounts", i, arena, &ret->path, err);
    if (rc < 0)
        return rc;
    if (has(object, "volume") + has(object, "bind") + has(object, "tmpfs") != 1)
        return err_set(err, EINVAL, "mounts[%zu]: expected one of volume, bind and tmpfs", i);
    ret->read_only = json_is_true(json_object_get(object, "read_only"));
    if (has(object, "bind")) {
        ret->kind = PLAN_BIND;
        return source_read(object, "bind", i, arena, &ret->source, err);
    }
    if (has(object, "tmpfs")) {
        ret->kind = PLAN_TMPFS;
        if (quantity_parse("memory", json_object_get(object, "tmpfs"), &ret->bytes, NULL) < 0 || ret->bytes <= 0)
            return err_set(err, EINVAL, "mounts[%zu]: tmpfs: expected a size in bytes such as 64Mi", i);
        return 0;
    }
    ret->volume = text_in(object, "volume");
    if (!volume_valid(ret->volume))
        return err_set(err, EINVAL, "mounts[%zu]: volume: expected a name without '/' and without a leading dot", i);
    ret->kind = has(object, "source") ? PLAN_BIND : PLAN_LOCAL;
    return ret->kind == PLAN_BIND ? source_read(object, "source", i, arena, &ret->source, err) : 0;
}

static int mount_compare(const void *a, const void *b)
{
    return strcmp(((const struct plan_mount *)a)->path, ((const struct plan_mount *)b)->path);
}

static int list_of(const json_t *config, const char *key, size_t max, const json_t **ret, struct berth_err *err)
{
    *ret = has(config, key) ? json_object_get(config, key) : NULL;
    if (*ret && !json_is_array(*ret))
        return err_set(err, EINVAL, "%s: expected a list", key);
    if (json_array_size(*ret) > max)
        return err_set(err, EINVAL, "%s: at most %zu", key, max);
    return 0;
}

static int mounts_read(const json_t *config, struct arena *arena, struct mount_plan *ret, struct berth_err *err)
{
    const json_t *list = NULL;
    int rc = list_of(config, "mounts", PLAN_MOUNTS_MAX, &list, err);
    size_t len = json_array_size(list);
    ret->mounts = ARENA_ARRAY(arena, struct plan_mount, len + 1);
    for (size_t i = 0; rc == 0 && i < len; i++)
        rc = mount_read(json_array_get(list, i), i, arena, &ret->mounts[i], err);
    if (rc < 0)
        return rc;
    ret->mounts_len = len;
    qsort(ret->mounts, len, sizeof *ret->mounts, mount_compare);
    for (size_t i = 1; i < len; i++)
        if (mount_compare(&ret->mounts[i - 1], &ret->mounts[i]) == 0)
            return err_set(err, EINVAL, "mounts: %s is listed twice", ret->mounts[i].path);
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* A number, or a text of octal digits. */
static bool mode_read(const json_t *object, unsigned *ret)
{
    const json_t *value = json_object_get(object, "mode");
    const char *digits = json_string_value(value);
    *ret = 0444;
    if (!value || json_is_null(value))
        return true;
    json_int_t mode = digits ? 0 : json_is_integer(value) ? json_integer_value(value) : -1;
    if (digits && (!*digits || strlen(digits) > 4 || strspn(digits, "01234567") != strlen(digits)))
        return false;
    for (; digits && *digits; digits++)
        mode = mode * 8 + (*digits - '0');
    *ret = (unsigned)mode;
    return mode >= 0 && mode <= 0777;
}

static int file_read_one(const json_t *object, size_t i, struct arena *arena, struct plan_file *ret,
                         struct berth_err *err)
{
    int rc = target_read(object, "files", i, arena, &ret->path, err);
    if (rc < 0)
        return rc;
    const char *slash = strrchr(ret->path, '/');
    ret->folder = arena_strndup(arena, ret->path, (size_t)(slash - ret->path));
    ret->name = slash + 1;
    if (ret->name[0] == '.' && strlen(ret->name) > 4 && strcmp(ret->name + strlen(ret->name) - 4, ".new") == 0)
        return err_set(err, EINVAL, "files[%zu]: path: %s: the name must not end with .new", i, ret->path);
    if (has(object, "text") == has(object, "secret"))
        return err_set(err, EINVAL, "files[%zu]: expected either text, or secret and key", i);
    if (has(object, "secret")) {
        ret->secret = text_in(object, "secret");
        ret->key = text_in(object, "key");
        return ret->secret && ret->key
                   ? 0
                   : err_set(err, EINVAL, "files[%zu]: expected the names of a secret and a key", i);
    }
    const json_t *text = json_object_get(object, "text");
    ret->text = json_string_value(text);
    ret->text_len = json_string_length(text);
    if (!ret->text || ret->text_len > PLAN_TEXT_MAX)
        return err_set(err, EINVAL, "files[%zu]: text: expected at most %d bytes of text", i, PLAN_TEXT_MAX);
    if (!mode_read(object, &ret->mode))
        return err_set(err, EINVAL, "files[%zu]: mode: expected permissions such as \"0644\"", i);
    return 0;
}

static int file_compare(const void *a, const void *b)
{
    return strcmp(((const struct plan_file *)a)->path, ((const struct plan_file *)b)->path);
}

static int files_read(const json_t *config, struct arena *arena, struct mount_plan *ret, struct berth_err *err)
{
    const json_t *list = NULL;
    int rc = list_of(config, "files", PLAN_FILES_MAX, &list, err);
    size_t len = json_array_size(list);
    ret->files = ARENA_ARRAY(arena, struct plan_file, len + 1);
    for (size_t i = 0; rc == 0 && i < len; i++)
        rc = file_read_one(json_array_get(list, i), i, arena, &ret->files[i], err);
    if (rc < 0)
        return rc;
    ret->files_len = len;
    qsort(ret->files, len, sizeof *ret->files, file_compare);
    for (size_t i = 0; i < len; i++) {
        if (i && file_compare(&ret->files[i - 1], &ret->files[i]) == 0)
            return err_set(err, EINVAL, "files: %s is listed twice", ret->files[i].path);
        for (size_t k = 0; k < ret->mounts_len; k++)
            if (strcmp(ret->mounts[k].path, ret->files[i].path) == 0)
                return err_set(err, EINVAL, "%s is both a file and a mount", ret->files[i].path);
    }
    return 0;
}

int mount_plan_read(const json_t *config, struct arena *arena, struct mount_plan *ret, struct berth_err *err)
{
    struct mount_plan plan = {0};
    int rc = mounts_read(config, arena, &plan, err);
    rc = rc < 0 ? rc : files_read(config, arena, &plan, err);
    if (rc < 0)
        return rc;
    if (has(config, "settings")) {
        plan.settings = json_object_get(config, "settings");
        if (!json_is_object(plan.settings))
            return err_set(err, EINVAL, "settings: expected an object");
    }
    *ret = plan;
    return 0;
}

#include "kube/sched/profile.h"

#include <errno.h>
#include <string.h>

enum { NAMES_MAX = 64 };

static int profile_find(const char *name, const struct berth_profile **ret, struct berth_err *err)
{
    *ret = berth_profile_find(name);
    return *ret ? 0 : err_set(err, EINVAL, "unknown profile '%s'; see 'berth profiles'", name);
}

/* NAME or NAME=PROFILE. */
static int name_read(const char *at, size_t len, struct arena *arena, const struct kube_profiles *known,
                     const char **ret_name, const char **ret_profile, struct berth_err *err)
{
    const struct berth_profile *profile = known->own;
    char *name = arena_strndup(arena, at, len);
    char *is = strchr(name, '=');
    int rc = is ? profile_find(is + 1, &profile, err) : 0;
    if (rc < 0)
        return err_prefix(err, "--scheduler-name");
    if (is)
        *is = '\0';
    if (!*name)
        return err_set(err, EINVAL,
                       "--scheduler-name must be NAME or NAME=PROFILE, such as berth-pack=pack, not '%.*s'", (int)len,
                       at);
    if (strpbrk(name, "\"\\ \t\r\n"))
        return err_set(err, EINVAL, "--scheduler-name: '%s' must not contain spaces or quotes", name);
    for (size_t i = 0; i < known->len; i++)
        if (strcmp(known->names[i], name) == 0)
            return err_set(err, EINVAL, "--scheduler-name has '%s' twice; each name has one profile", name);
    *ret_name = name;
    *ret_profile = profile == known->own ? "" : profile->name;
    return 0;
}

int kube_profiles_read(const char *names, const char *profile, struct arena *arena, struct kube_profiles *ret,
                       struct berth_err *err)
{
    const char **to = ARENA_ARRAY(arena, const char *, NAMES_MAX);
    const char **profiles = ARENA_ARRAY(arena, const char *, NAMES_MAX);
    struct kube_profiles found = {.names = to, .profiles = profiles};
    if (profile_find(profile, &found.own, err) < 0)
        return err_prefix(err, "--profile");
    for (const char *at = names;; at++) {
        size_t len = strcspn(at, ",");
        if (len && found.len == NAMES_MAX)
            return err_set(err, EINVAL, "--scheduler-name has more than %d names", NAMES_MAX);
        int rc = len ? name_read(at, len, arena, &found, &to[found.len], &profiles[found.len], err) : 0;
        if (rc < 0)
            return rc;
        found.len += len > 0;
        at += len;
        if (!*at)
            break;
    }
    if (!found.len)
        return err_set(err, EINVAL, "--scheduler-name is empty; name at least one, such as berth");
    *ret = found;
    return 0;
}

#include "machine/cgroup/limit_names.h"

#include <stdio.h>
#include <string.h>

/* Returns the position of a name, or the position to insert it at. */
static char *position_of(char *list, const char *name, bool *ret_there)
{
    char *at = list;
    *ret_there = false;
    while (*at) {
        size_t len = strcspn(at, ","), size = strlen(name);
        int order = strncmp(at, name, len < size ? len : size);
        order = order ? order : len < size ? -1 : len > size;
        *ret_there = order == 0;
        if (order >= 0)
            break;
        at += len + (at[len] == ',');
    }
    return at;
}

bool limit_names_has(const char *list, const char *name)
{
    bool there = false;
    if (!list)
        return false;
    (void)position_of((char *)list, name, &there);
    return there;
}

void limit_names_put(char list[static CGROUP_LIST_MAX], const char *name)
{
    char rest[CGROUP_LIST_MAX];
    bool there;
    char *at = position_of(list, name, &there);
    if (there || strlen(list) + strlen(name) + 2 > CGROUP_LIST_MAX)
        return;
    (void)snprintf(rest, sizeof rest, "%s", at);
    bool after = at > list && at[-1] != ',';
    (void)snprintf(at, CGROUP_LIST_MAX - (size_t)(at - list), "%s%s%s%s", after ? "," : "", name, *rest ? "," : "",
                   rest);
}

void limit_names_join(char list[static CGROUP_LIST_MAX], const char *more)
{
    while (*more) {
        char name[CGROUP_LIST_MAX];
        size_t len = strcspn(more, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, more);
        limit_names_put(list, name);
        more += len + (more[len] == ',');
    }
}

bool limit_names_take(char list[static CGROUP_LIST_MAX], const char *name)
{
    bool there;
    char *at = position_of(list, name, &there);
    if (!there)
        return false;
    const char *next = at + strcspn(at, ",");
    if (*next)
        memmove(at, next + 1, strlen(next + 1) + 1);
    else
        at[at > list ? -1 : 0] = '\0';
    return true;
}

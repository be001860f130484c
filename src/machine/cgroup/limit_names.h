/* limit_names.h - short lists of resources as text: comma-separated, sorted, none twice ("cpu,network-in"). */
#pragma once

#include <stdbool.h>

#include "machine/cgroup/cgroup.h"

/* NULL is an empty list. */
bool limit_names_has(const char *list, const char *name);
/* Puts a name where it belongs; one that has no room is left out. */
void limit_names_put(char list[static CGROUP_LIST_MAX], const char *name);
/* Puts all of another list. */
void limit_names_join(char list[static CGROUP_LIST_MAX], const char *more);
/* Takes a name out; false: it was not there. */
bool limit_names_take(char list[static CGROUP_LIST_MAX], const char *name);

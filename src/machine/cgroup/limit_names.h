/* limit_names.h - lists of resource names as text: comma-separated, sorted, without duplicates ("cpu,network-in"). */
#pragma once

#include <stdbool.h>

#include "machine/cgroup/cgroup.h"

/* NULL is an empty list. */
bool limit_names_has(const char *list, const char *name);
/* Inserts a name at its sorted position; ignored if there is no room. */
void limit_names_put(char list[static CGROUP_LIST_MAX], const char *name);
/* Inserts all names of another list. */
void limit_names_join(char list[static CGROUP_LIST_MAX], const char *more);
/* Removes a name; false: it was not in the list. */
bool limit_names_take(char list[static CGROUP_LIST_MAX], const char *name);

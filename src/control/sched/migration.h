/* migration.h - migrations of instances: list, request, undo.
 *
 * A migration is a fact (berth.h) and two instances; its name is the number of the old instance. These verbs only write
 * facts; the plan moves the instance. If the fact has changed since a plan was made, the plan's actions on that
 * instance are in conflict (batch.c), so an older plan never overrides an undo that the client has seen confirmed.
 */
#pragma once

#include "control/api/request.h"

extern const struct key_table migrate_keys;

/* Returns the instance that replaces `old`; NULL: none yet. */
const struct object *migration_successor(const struct state *s, const struct object *old);

int migration_list(struct request *c);
int instance_migrate(struct request *c);
int migration_undo(struct request *c);

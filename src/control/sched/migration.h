/* migration.h - moves of instances: what is under way, asking for one, taking one back.
 *
 * A migration is a fact (berth.h) and two instances; it is named by the number of the old one. These verbs only write
 * facts: the plan moves. What a plan was about to do with an instance meets a conflict when its fact has changed meanwhile
 * (batch.c), so an undo that was answered is never overtaken.
 */
#pragma once

#include "control/api/request.h"

extern const struct key_table migrate_keys;

/* The instance that is to take over from `old`; NULL: none yet. */
const struct object *migration_heir(const struct state *s, const struct object *old);

int migration_list(struct call *c);
int instance_migrate(struct call *c);
int migration_undo(struct call *c);

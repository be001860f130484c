/* migration.h - moves of instances: what is under way, asking for one, taking one back.
 *
 * A migration is a fact (berth.h) and two instances; it is named by the number of the old one. These verbs only write
 * facts: the plan moves. What a plan was about to do with an instance meets a conflict when its fact has changed meanwhile
 * (unit.c), so an undo that was answered is never overtaken.
 */
#pragma once

#include "control/call.h"

extern const struct key_table migrate_keys;

int migration_list(struct call *c);
int instance_migrate(struct call *c);
int migration_undo(struct call *c);

/* exclusive.h - first come, first served: who on this machine has a port, or a piece of any other exclusive resource.
 *
 * Asked on the launchers' threads, given back on the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct claims;

struct claims *claims_new(void);
void claims_free(struct claims *c); /* NULL is fine */
/* False: another instance has it. `what`: "port tcp/10016", "piece acme.example/robot/left". */
bool claims_take(struct claims *c, uint64_t id, const char *what);
/* All that the instance has. */
void claims_release(struct claims *c, uint64_t id);
/* Is it taken? */
bool claims_taken(struct claims *c, const char *what);

/* exclusive.h - registry of ports and exclusive resources in use on this node: the first instance that claims one gets
 * it.
 *
 * Thread-safe: launcher threads claim, the event loop's thread releases.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct claims;

struct claims *claims_new(void);
void claims_free(struct claims *c); /* NULL is fine */
/* Claims a port ("port tcp/10016") or a piece of an exclusive resource ("piece acme.example/robot/left"). False:
 * another instance has it. */
bool claims_take(struct claims *c, uint64_t id, const char *what);
/* Releases all claims of the instance. */
void claims_release(struct claims *c, uint64_t id);
/* Tells whether an instance has claimed it. */
bool claims_taken(struct claims *c, const char *what);

/* exclusive.h - registry of ports and exclusive resources in use on this node: the first instance that claims one gets
 * it.
 *
 * Thread-safe: launcher threads claim, the event loop's thread releases.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct exclusive_claims;

struct exclusive_claims *exclusive_claims_new(void);
void exclusive_claims_free(struct exclusive_claims *c); /* NULL is fine */
/* Claims a port ("port tcp/10016") or a piece of an exclusive resource ("piece acme.example/robot/left"). False:
 * another instance has it. */
bool exclusive_claims_add(struct exclusive_claims *c, uint64_t id, const char *what);
/* Releases all claims of the instance. */
void exclusive_claims_remove_all(struct exclusive_claims *c, uint64_t id);
/* Tells whether an instance has claimed it. */
bool exclusive_claims_contain(struct exclusive_claims *c, const char *what);

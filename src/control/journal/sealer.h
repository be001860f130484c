/* sealer.h - rotation of the journal: when the log is long or old enough, its records become a segment, off the loop.
 *
 * The store's log keeps the last SEALER_KEEP records for audits; earlier sealed records are trimmed from the log.
 * Segments beyond the retention are exported. Failures are logged and retried; the records stay where they are
 * meanwhile.
 */
#pragma once

#include "control/control.h"

enum { SEALER_KEEP = 20000 };

struct sealer;

/* `dir`: DIR/journal; NULL: no sealing, returns NULL. */
struct sealer *sealer_new(struct control *c, const char *dir);
void sealer_free(struct sealer *s); /* NULL is allowed */
/* Counts a written record of this many bytes. */
void sealer_note(struct sealer *s, size_t bytes);
/* Starts sealing if it is due. */
void sealer_step(struct sealer *s, int64_t steady_ns);
/* Seals all records at the next step, whatever their size. */
void sealer_seal_all(struct sealer *s);

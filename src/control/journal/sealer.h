/* sealer.h - the journal's rotation: when the log is long or old enough, its records become a segment, off the loop.
 *
 * The store's log keeps the last SEALER_KEEP records, for audits; what is sealed before them is trimmed from it. Segments
 * past the retention are exported. What fails is told in the daemon's log and tried again; the records stay where they
 * are meanwhile.
 */
#pragma once

#include "control/control.h"

enum { SEALER_KEEP = 20000 };

struct sealer;

/* `dir`: DIR/journal; NULL: nothing is sealed, and this is NULL. */
struct sealer *sealer_new(struct control *c, const char *dir);
void sealer_free(struct sealer *s); /* NULL is fine */
/* A record of so many bytes was written. */
void sealer_note(struct sealer *s, size_t bytes);
/* Begins what is due. */
void sealer_step(struct sealer *s, int64_t steady_ns);
/* Seals all there is, whatever its length, at the next step. */
void sealer_now(struct sealer *s);

/* journal_note.h - records of the journal that change no document: what was gathered in memory for a while.
 *
 * What people looked at (read_log.h), submissions that were refused (refusals.h), what nodes used (node_status.h).
 */
#pragma once

#include "base/str.h"
#include "control/control.h"

/* Submits a record of this kind; `extra` is a JSON object whose members the record gets. Logs a failure; -errno. */
int journal_note(struct control *c, const char *kind, const struct str *extra);

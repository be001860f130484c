/* journal_note.h - journal records that change no document: data that was collected in memory for some time.
 *
 * The sources are reads by users (read_log.h), refused submissions (refusals.h) and resource use of nodes
 * (node_status.h).
 */
#pragma once

#include "base/str.h"
#include "control/control.h"

/* Submits a record of this kind; the members of the JSON object `extra` are added to the record. Logs a failure and
 * returns -errno. */
int journal_note(struct control *c, const char *kind, const struct str *extra);

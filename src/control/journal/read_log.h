/* read_log.h - what people looked at, for the journal: who read what, how often, and when last.
 *
 * Gathered in memory and written once a minute, if anything else was since, one record for all: {"views": [[user, path, times, last], ...], "more": N}.
 * So reading costs no sync of the disk, and a crash loses a minute of it. Agents' reads are not people's, and what a
 * question was (its query) is not kept.
 */
#pragma once

#include "control/control.h"

struct reads;
struct reads *reads_new(void);
void reads_free(struct reads *v); /* NULL is fine */
void reads_note(struct reads *v, const char *user, const char *path, int64_t now_ns);
/* Submits what was gathered, if anything was. */
void reads_write(struct control *c);

/* read_log.h - the journal's record of reads: user, path, number of reads, time of the last one.
 *
 * Reads are collected in memory and written once a minute as one record, if another record was written since: {"views":
 * [[user, path, times, last], ...], "more": N}. So a read causes no sync of the disk, and a crash loses one minute of
 * reads. Reads of agents are not recorded, and neither are the queries of requests.
 */
#pragma once

#include "control/control.h"

struct reads;
struct reads *reads_new(void);
void reads_free(struct reads *v); /* NULL is allowed */
void reads_note(struct reads *v, const char *user, const char *path, int64_t now_ns);
/* Submits the collected reads, if there are any. */
void reads_write(struct control *c);

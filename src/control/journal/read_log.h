/* read_log.h - the journal's record of reads: user, path, number of reads, time of the last one.
 *
 * Reads are collected in memory and written once a minute as one record, if another record was written since: {"views":
 * [[user, path, times, last], ...], "more": N}. So a read causes no sync of the disk, and a crash loses one minute of
 * reads. Reads of agents are not recorded, and neither are the queries of requests.
 */
#pragma once

#include "control/control.h"

struct read_list;
struct read_list *read_list_new(void);
void read_list_free(struct read_list *v); /* NULL is allowed */
void read_list_note(struct read_list *v, const char *user, const char *path, int64_t now_ns);
/* Submits the collected reads, if there are any. */
void read_list_write(struct control *c);

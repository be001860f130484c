/* journal_source.h - opens the journal that a verb reads: a daemon's folder, a folder of segments, or files.
 *
 * `berth replay`, `berth sim replay` and the verbs of `berth journal` share these operands, times and errors.
 */
#pragma once

#include "cli/lib/command.h"
#include "journal/reader.h"

/* Opens --data, or the operands: one folder (of a daemon, or of segments), or files. Prints errors and returns an enum
 * exit_code. */
int journal_source_open(struct cli *cli, const char *data, const struct operands *operands, struct journal **ret);

/* A bound of the range to read: a record number, or a time. */
struct journal_bound {
    uint64_t number;
    int64_t ns;
};
/* Parses "1000", a time as for past_time_read, or NULL for no bound. `option` is named in errors. */
int journal_bound_read(struct cli *cli, const char *option, const char *text, struct journal_bound *ret);
/* Parses a time. */
int journal_time_read(struct cli *cli, const char *option, const char *text, int64_t *ret_ns);

#define JOURNAL_OPERANDS "[DIR|FILE...]"
#define JOURNAL_WHEN "a day, 18:30 (most recent), -10m or 2026-11-16T09:30:00Z"
#define JOURNAL_DATA_HELP "Data folder of a daemon, which may be running; reads its segments, then its log."

/* journal_source.h - where a verb reads a journal from: the folder of a daemon, or files.
 *
 * For `berth replay`, `berth sim replay` and the verbs of `berth journal`: the same operands, moments and refusals.
 */
#pragma once

#include "cli/lib/command.h"
#include "journal/reader.h"

/* --data, or operands: one folder (of a daemon, or of segments), or files. Tells what is wrong; then the code is not
 * EXIT_OK. */
int journal_source_open(struct cli *cli, const char *data, const struct operands *operands, struct journal **ret);

/* A bound of what is read: a number, or a moment. */
struct journal_bound {
    uint64_t number;
    int64_t ns;
};
/* "1000", a moment as moment_past_read takes it, or NULL for none. `option`: for the refusal. */
int journal_bound_read(struct cli *cli, const char *option, const char *text, struct journal_bound *ret);
/* A moment alone. */
int journal_moment_read(struct cli *cli, const char *option, const char *text, int64_t *ret_ns);

#define JOURNAL_OPERANDS "[DIR|FILE...]"
#define JOURNAL_WHEN "a day, 18:30 (the last one), -10m or 2026-11-16T09:30:00Z"
#define JOURNAL_DATA_HELP "The folder of a daemon, which may be running: its segments, then its log."

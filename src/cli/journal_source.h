/* journal_source.h - where a verb reads a journal from: the folder of a daemon, or files.
 *
 * For `berth replay` and the verbs of `berth journal`: the same operands, moments and refusals.
 */
#pragma once

#include "cli/command.h"
#include "journal/reader.h"

/* --data, or operands. Tells what is wrong; then the code is not EXIT_OK. */
int journal_source_open(struct cli *cli, const char *data, const struct operands *operands, struct journal **ret);

/* A bound of what is read: a number, or a moment. */
struct journal_bound {
    uint64_t number;
    int64_t ns;
};
/* "1000", "2026-11-16T01:49:00Z", "2026-11-16" (its beginning), or NULL for none. `option`: for the refusal. */
int journal_bound_read(struct cli *cli, const char *option, const char *text, struct journal_bound *ret);

#define JOURNAL_OPERANDS "[FILE...]"
#define JOURNAL_DATA_HELP "The folder of a daemon, which may be running: its segments, then its log."

/* status_line.h - the status of a workload in one line: redrawn on a terminal, otherwise printed once for each change.
 *
 * The line goes to standard error. For the progress of the command itself see progress.h.
 */
#pragma once

#include "cli/show/collection.h"

struct status_line {
    struct cli *cli;
    char text[256];
    bool drawn;
};

/* Draws an object's `status`: its state and reason, and a bar if the status has a progress. */
void status_line_draw(struct status_line *l, const struct object_target *t, const json_t *status);
void status_line_show(struct status_line *l, const char *text);
/* Clears the line on the terminal; the next draw shows it again. */
void status_line_end(struct status_line *l);

/* Returns the outcome ("timed-out") or else the state; "?" for no status. */
const char *status_word(const json_t *status);
/* Returns whether the state is final: ended, failed or cancelled. */
bool status_is_final(const json_t *status);

/* status_line.h - how a workload is doing, in one line: drawn again and again on a terminal, elsewhere once for each change.
 *
 * Goes to standard error. Not a bar of our own work: progress.h.
 */
#pragma once

#include "cli/show/collection.h"

struct status_line {
    struct cli *cli;
    char text[256];
    bool drawn;
};

/* By an object's `status`: state, reason, and a bar where it says how far it is. */
void status_line_draw(struct status_line *l, const struct target *t, const json_t *status);
void status_line_show(struct status_line *l, const char *text);
/* Removes it from the terminal; the next draw brings it back. */
void status_line_end(struct status_line *l);

/* How it ended ("timed-out"), or else its state; "?" of nothing. */
const char *status_word(const json_t *status);
/* Nothing more will come of it by itself: ended, failed or cancelled. */
bool status_is_over(const json_t *status);

/* screen.h - a terminal that is drawn on as a whole, again and again, without flicker; and keys as they are pressed.
 *
 * A frame is written in one piece over the last one: nothing is cleared that is about to be drawn. The terminal is as it was
 * before when the screen is closed, also by a signal that ends the program.
 */
#pragma once

#include "base/str.h"
#include "cli/lib/cli.h"

#include <signal.h>
#include <termios.h>

struct screen {
    const struct cli *cli;
    int rows, columns;
    int signal_fd;         /* a new size, and what ends the program */
    struct termios before; /* how the terminal was */
    sigset_t unblocked;
};

/* False: standard output or input is no terminal. */
bool screen_open(struct screen *s, const struct cli *cli);
void screen_close(struct screen *s);
/* Reads the size anew; true if it changed. */
bool screen_measure(struct screen *s);
/* Draws the lines of a text; what is beyond the last row is left out. Lines are cut at the last column; sequences that
 * colour count for nothing. */
void screen_draw(struct screen *s, const struct str *text);
/* A key, or 0 after so long, or when the size changed; 'q' when the program is to end. Arrows are 'j' and 'k'. */
int screen_key(struct screen *s, int wait_ms);

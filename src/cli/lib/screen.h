/* screen.h - full-screen terminal output without flicker, and single key presses.
 *
 * Each frame is written in one piece over the previous frame; lines are not cleared before they are drawn. screen_close
 * restores the terminal. SIGINT, SIGTERM and SIGHUP are reported as the key 'q', so that the program closes the screen
 * before it ends.
 */
#pragma once

#include "base/str.h"
#include "cli/lib/cli.h"

#include <signal.h>
#include <termios.h>

struct screen {
    const struct cli *cli;
    int rows, columns;
    int signal_fd;         /* receives SIGWINCH and the signals that end the program */
    struct termios before; /* the terminal's settings before screen_open */
    sigset_t unblocked;
};

/* Returns false if standard output or input is not a terminal. */
bool screen_open(struct screen *s, const struct cli *cli);
void screen_close(struct screen *s);
/* Reads the terminal size again; returns true if the size changed. */
bool screen_measure(struct screen *s);
/* Draws the lines of a text and omits lines beyond the last row. Lines are cut at the last column; colour sequences
 * take no columns. */
void screen_draw(struct screen *s, const struct str *text);
/* Returns the next key, 0 after wait_ms or when the size changed, and 'q' when the program must end. Arrow keys are 'j'
 * and 'k'. */
int screen_key(struct screen *s, int wait_ms);

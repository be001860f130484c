/* editor.h - lets a person edit a text in the editor of their choice. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct editor {
    char *path; /* of the file that is edited; it stays after a failure, so that no work is lost */
};

/* Makes the file. -EIO and its kin. */
int editor_open(struct editor *e, const char *name, struct berth_err *err);
/* Writes the text, runs $VISUAL, $EDITOR or vi on it, waits, and reads it back into `text`. -ECHILD when the editor could
 * not be run or ended with a failure; the text is then as it was. */
int editor_run(struct editor *e, struct str *text, struct berth_err *err);
/* Removes the file. */
void editor_close(struct editor *e);
/* Leaves the file where it is, with this text. */
void editor_keep(struct editor *e, const struct str *text);

/* editor.h - lets the user edit a text in an editor. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct editor {
    char *path; /* the temporary file; it is kept after an error, so that no edit is lost */
};

/* Creates the temporary file. Returns a negative errno on failure. */
int editor_open(struct editor *e, const char *name, struct berth_err *err);
/* Writes the text to the file, runs $VISUAL, $EDITOR or vi, waits, and reads the file back into `text`. Returns -ECHILD
 * if the editor could not be started or failed; `text` is then unchanged. */
int editor_run(struct editor *e, struct str *text, struct berth_err *err);
/* Deletes the file. */
void editor_close(struct editor *e);
/* Keeps the file, with this text. */
void editor_save_text(struct editor *e, const struct str *text);

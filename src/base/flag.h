/* flag.h - a program's options by a table: read, checked and printed from the same rows.
 *
 * To add an option: a field in the program's struct and a row in its table, which is also its help.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum flag_kind { FLAG_SWITCH, FLAG_TEXT, FLAG_COUNT }; /* bool, const char *, uint64_t */

struct flag {
    const char *name;
    enum flag_kind kind;
    size_t at;         /* offset of its field */
    const char *value; /* what help calls it; NULL for a switch */
    uint64_t min, max; /* of a count */
    const char *help;  /* NULL: an old spelling, which is read and not printed */
};

/* Reads argv[1] and on into *ret, whose fields keep what they have where nothing is given. "--name value", "--name=value",
 * and "-h" for a flag named help. -EINVAL with what is wrong, in the program's name; *ret may be half filled. */
int flags_read(const char *program, const struct flag *flags, size_t len, int argc, char *const *argv, void *ret,
               struct berth_err *err);
void flags_print(const struct flag *flags, size_t len, FILE *to);

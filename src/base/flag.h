/* flag.h - command-line options of a program, parsed, checked and printed from one table.
 *
 * To add an option: add a field to the program's struct and a row to its table. The row is also the help text.
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
    size_t at;         /* offset of the option's field in the program's struct */
    const char *value; /* name of the value in the help; NULL for a switch */
    uint64_t min, max; /* bounds of a FLAG_COUNT */
    const char *help;  /* NULL: a hidden alias, which is accepted but not printed */
};

/* Parses argv[1] and later arguments into *ret. Fields without an option keep their values. Accepts "--name value",
 * "--name=value", and "-h" if the table has a flag named help. Returns -EINVAL with a text that names the program; *ret
 * may then be partly filled. */
int flags_read(const char *program, const struct flag *flags, size_t len, int argc, char *const *argv, void *ret,
               struct berth_err *err);
void flags_print(const struct flag *flags, size_t len, FILE *to);

/* options.h - reads a command line by a table of options.
 *
 * Long options take their value after '=' or as the next argument, short ones directly or as the next argument; short
 * flags may stand together; options and operands mix; after "--" everything is an operand. The same tables print the
 * help, the manual pages and the completion scripts. Not getopt: it cannot say what a value must look like, nor "did you mean".
 *
 * To add an option: a field in the verb's struct of values and a row in its table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_COUNT,  /* struct option_count; digits, with k or M for thousands and millions */
    OPTION_CHOICE, /* unsigned: the place in `choices` */
    OPTION_LIST,   /* struct option_list: a text each time the option is given */
};

struct option_count {
    uint64_t n;
    bool given;
};

struct option_list {
    const char **at;
    size_t len, cap;
};

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;              /* into the values */
    const char *value;          /* what help calls the value: "FILE" */
    const char *const *choices; /* ends with NULL */
    uint64_t min, max;          /* of a count; max 0: no limit */
    const char *text;           /* of help */
};

/* Rows of a table: `field` of the struct `values` is what the option fills. */
#define OPTION_FLAG_ROW(name, letter, values, field, text)                                                             \
    {                                                                                                                  \
        name, letter, OPTION_FLAG, offsetof(struct values, field), NULL, NULL, 0, 0, text                              \
    }
#define OPTION_TEXT_ROW(name, letter, values, field, value, text)                                                      \
    {                                                                                                                  \
        name, letter, OPTION_TEXT, offsetof(struct values, field), value, NULL, 0, 0, text                             \
    }
#define OPTION_COUNT_ROW(name, letter, values, field, min, max, text)                                                  \
    {                                                                                                                  \
        name, letter, OPTION_COUNT, offsetof(struct values, field), "N", NULL, min, max, text                          \
    }
#define OPTION_CHOICE_ROW(name, letter, values, field, choices, text)                                                  \
    {                                                                                                                  \
        name, letter, OPTION_CHOICE, offsetof(struct values, field), NULL, choices, 0, 0, text                         \
    }

#define OPTION_LIST_ROW(name, letter, values, field, value, text)                                                      \
    {                                                                                                                  \
        name, letter, OPTION_LIST, offsetof(struct values, field), value, NULL, 0, 0, text                             \
    }

/* A table and the struct it fills. */
struct option_set {
    const struct option *options;
    size_t len;
    void *values;
};

/* Words of the command line that are not options; they point into argv. */
struct operands {
    const char **at;
    size_t len;
    size_t before; /* how many of them stood before "--"; all if there was none */
};

/* Reads argv[0] to argv[argc - 1]. `ret_operands->at` has room for argc words. -EINVAL and a sentence when the line
 * does not fit the tables; the values may then be half filled. */
int options_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv,
                  struct operands *ret_operands, struct berth_err *err);
/* The same up to the first word that is no option; *ret_words is how many that took. */
int options_parse_leading(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *ret_words,
                          struct berth_err *err);
/* Frees lists. */
void options_done(const struct option_set *sets, size_t sets_len);

/* "250", "100k", "1M". -EINVAL otherwise; *ret untouched. */
int count_parse(const char *text, uint64_t *ret);

/* options.h - parses a command line by a table of options.
 *
 * A long option takes its value after '=' or as the next argument. A short option takes its value directly or as the
 * next argument. Short flags may be combined; options and operands may be mixed; after "--" every word is an operand.
 * The same tables print the help, the manual pages and the completion scripts. getopt is not used because getopt cannot
 * check values or suggest the nearest option.
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
    OPTION_COUNT,  /* struct option_count; digits, with suffix k for thousands or M for millions */
    OPTION_CHOICE, /* unsigned: an index into `choices` */
    OPTION_LIST,   /* struct option_list: one entry for each time the option is given */
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
    size_t offset;              /* of the field in the struct of values */
    const char *value;          /* placeholder in the help: "FILE" */
    const char *const *choices; /* ends with NULL */
    uint64_t min, max;          /* limits of a count; max 0: no limit */
    const char *text;           /* help text */
};

/* Rows of a table: the option sets the field `field` of the struct `values`. */
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

/* A table of options and the struct of values that the options set. */
struct option_set {
    const struct option *options;
    size_t len;
    void *values;
};

/* The words of the command line that are not options; the pointers point into argv. */
struct operands {
    const char **at;
    size_t len;
    size_t before; /* number of operands before "--"; `len` without "--" */
};

/* Parses argv[0] to argv[argc - 1]. `ret_operands->at` must have room for argc words. Returns -EINVAL and a sentence
 * when the command line does not match the tables; some values may be set by then. */
int options_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv,
                  struct operands *ret_operands, struct berth_err *err);
/* Parses options up to the first word that is not an option; *ret_words is the number of words parsed. */
int options_parse_leading(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *ret_words,
                          struct berth_err *err);
/* Frees the values of list options. */
void options_done(const struct option_set *sets, size_t sets_len);

/* Parses "250", "100k" or "1M". Otherwise returns -EINVAL and leaves *ret untouched. */
int count_parse(const char *text, uint64_t *ret);

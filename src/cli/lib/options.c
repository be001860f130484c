#include "cli/lib/options.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "cli/lib/suggest.h"

int count_parse(const char *text, uint64_t *ret)
{
    uint64_t n = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(n, (uint64_t)10, &n) || __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            return -EINVAL;
    }
    uint64_t unit = *p == 'k' ? 1000 : *p == 'M' ? 1000000 : 1;
    if (p == text || p[unit > 1] != '\0' || __builtin_mul_overflow(n, unit, &n))
        return -EINVAL;
    *ret = n;
    return 0;
}

static void *value_at(const struct option_set *set, const struct option *option)
{
    return (char *)set->values + option->offset;
}

static int count_set(const struct option_set *set, const struct option *option, const char *value,
                     struct berth_err *err)
{
    struct option_count *to = value_at(set, option);
    uint64_t n;

    if (count_parse(value, &n) != 0)
        return err_set(err, EINVAL, "--%s takes a number such as 250, 100k or 1M, not '%s'", option->name, value);
    if (n < option->min)
        return err_set(err, EINVAL, "--%s must be at least %llu", option->name, (unsigned long long)option->min);
    if (option->max && n > option->max)
        return err_set(err, EINVAL, "--%s must be at most %llu", option->name, (unsigned long long)option->max);
    *to = (struct option_count){.n = n, .given = true};
    return 0;
}

static int choice_set(const struct option_set *set, const struct option *option, const char *value,
                      struct berth_err *err)
{
    char list[256] = "";
    size_t at = 0;

    for (unsigned i = 0; option->choices[i]; i++) {
        const char *choice = option->choices[i];
        if (strcmp(choice, value) == 0) {
            *(unsigned *)value_at(set, option) = i;
            return 0;
        }
        if (at + strlen(choice) + 3 < sizeof list) {
            at = (size_t)(stpcpy(stpcpy(list + at, i ? ", " : ""), choice) - list);
        }
    }
    return err_set(err, EINVAL, "--%s must be one of %s, not '%s'", option->name, list, value);
}

/* value: NULL for a flag. */
static int option_set(const struct option_set *set, const struct option *option, const char *value,
                      struct berth_err *err)
{
    switch (option->kind) {
    case OPTION_FLAG: *(bool *)value_at(set, option) = true; return 0;
    case OPTION_TEXT: *(const char **)value_at(set, option) = value; return 0;
    case OPTION_COUNT: return count_set(set, option, value, err);
    case OPTION_CHOICE: return choice_set(set, option, value, err);
    case OPTION_LIST: vec_push((struct option_list *)value_at(set, option), value); return 0;
    }
    return 0;
}

static const struct option *find_name(const struct option_set *sets, size_t sets_len, const char *name, size_t len,
                                      const struct option_set **ret_set)
{
    for (size_t s = 0; s < sets_len; s++) {
        for (size_t i = 0; i < sets[s].len; i++) {
            const struct option *option = &sets[s].options[i];
            if (strncmp(option->name, name, len) == 0 && option->name[len] == '\0') {
                *ret_set = &sets[s];
                return option;
            }
        }
    }
    return NULL;
}

static const struct option *find_letter(const struct option_set *sets, size_t sets_len, char letter,
                                        const struct option_set **ret_set)
{
    for (size_t s = 0; s < sets_len; s++) {
        for (size_t i = 0; i < sets[s].len; i++) {
            if (sets[s].options[i].letter == letter) {
                *ret_set = &sets[s];
                return &sets[s].options[i];
            }
        }
    }
    return NULL;
}

static int unknown_name(const struct option_set *sets, size_t sets_len, const char *name, size_t len,
                        struct berth_err *err)
{
    char wrong[64];
    struct suggestions near;

    if (len >= sizeof wrong)
        len = sizeof wrong - 1;
    memcpy(wrong, name, len);
    wrong[len] = '\0';
    suggest_init(&near, wrong);
    for (size_t s = 0; s < sets_len; s++) {
        for (size_t i = 0; i < sets[s].len; i++)
            suggest_offer(&near, sets[s].options[i].name);
    }
    if (near.len)
        return err_set(err, EINVAL, "unknown option --%s (did you mean --%s?)", wrong, near.at[0]);
    return err_set(err, EINVAL, "unknown option --%s", wrong);
}

/* Parses "--name", "--name=value" or "--name" "value". *i is the argument's index; it is advanced past a value. */
static int long_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *i,
                      struct berth_err *err)
{
    const char *name = argv[*i] + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    const struct option_set *set;
    const struct option *option = find_name(sets, sets_len, name, len, &set);

    if (!option)
        return unknown_name(sets, sets_len, name, len, err);
    if (option->kind == OPTION_FLAG && value)
        return err_set(err, EINVAL, "--%s takes no value", option->name);
    if (option->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc)
            return err_set(err, EINVAL, "--%s needs a value", option->name);
        value = argv[++*i];
    }
    return option_set(set, option, value, err);
}

/* Parses "-abc", "-ovalue" or "-o" "value". */
static int short_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *i,
                       struct berth_err *err)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct option_set *set;
        const struct option *option = find_letter(sets, sets_len, *p, &set);
        const char *value = NULL;

        if (!option)
            return err_set(err, EINVAL, "unknown option -%c", *p);
        if (option->kind != OPTION_FLAG) {
            value = p[1] ? p + 1 + (p[1] == '=') : ++*i < argc ? argv[*i] : NULL;
            if (!value)
                return err_set(err, EINVAL, "-%c needs a value", *p);
        }
        int rc = option_set(set, option, value, err);
        if (rc != 0 || value)
            return rc;
    }
    return 0;
}

static bool is_operand(const char *word)
{
    return word[0] != '-' || word[1] == '\0';
}

/* Parses one option with its value; *i is the option's index and becomes the index of the last word used. */
static int option_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *i,
                        struct berth_err *err)
{
    return argv[*i][1] == '-' ? long_parse(sets, sets_len, argc, argv, i, err)
                              : short_parse(sets, sets_len, argc, argv, i, err);
}

int options_parse(const struct option_set *sets, size_t sets_len, int argc, char *const *argv,
                  struct operands *ret_operands, struct berth_err *err)
{
    bool only_operands = false;

    ret_operands->len = 0;
    for (int i = 0; i < argc; i++) {
        int rc = 0;
        if (only_operands || is_operand(argv[i])) {
            ret_operands->at[ret_operands->len++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
            ret_operands->before = ret_operands->len;
        } else {
            rc = option_parse(sets, sets_len, argc, argv, &i, err);
        }
        if (rc != 0)
            return rc;
    }
    if (!only_operands)
        ret_operands->before = ret_operands->len;
    return 0;
}

int options_parse_leading(const struct option_set *sets, size_t sets_len, int argc, char *const *argv, int *ret_words,
                          struct berth_err *err)
{
    int i = 0;

    for (; i < argc && !is_operand(argv[i]); i++) {
        int rc = option_parse(sets, sets_len, argc, argv, &i, err);
        if (rc != 0)
            return rc;
    }
    *ret_words = i;
    return 0;
}

void options_done(const struct option_set *sets, size_t sets_len)
{
    for (size_t s = 0; s < sets_len; s++) {
        for (size_t i = 0; i < sets[s].len; i++) {
            if (sets[s].options[i].kind == OPTION_LIST)
                vec_done((struct option_list *)value_at(&sets[s], &sets[s].options[i]));
        }
    }
}

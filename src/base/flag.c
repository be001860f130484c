/* flag.c - parsing and printing of command-line options. */
#include "base/flag.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

static const struct flag *find(const struct flag *flags, size_t flags_len, const char *name, size_t len)
{
    for (size_t i = 0; i < flags_len; i++)
        if (strlen(flags[i].name) == len && strncmp(flags[i].name, name, len) == 0)
            return &flags[i];
    return NULL;
}

static int count_read(const struct flag *flag, const char *text, uint64_t *ret, struct berth_err *err)
{
    int64_t n;
    if (!str_parse_i64(text, &n) || n < 0 || (uint64_t)n < flag->min || (uint64_t)n > flag->max)
        return err_set(err, EINVAL, "--%s takes a whole number from %llu to %llu, not '%s'", flag->name,
                       (unsigned long long)flag->min, (unsigned long long)flag->max, text);
    *ret = (uint64_t)n;
    return 0;
}

static int value_set(const struct flag *flag, const char *value, void *ret, struct berth_err *err)
{
    void *field = (char *)ret + flag->at;
    if (!value || !*value)
        return err_set(err, EINVAL, "--%s needs a value: %s", flag->name, flag->value);
    if (flag->kind == FLAG_COUNT)
        return count_read(flag, value, field, err);
    *(const char **)field = value;
    return 0;
}

int flags_read(const char *program, const struct flag *flags, size_t len, int argc, char *const *argv, void *ret,
               struct berth_err *err)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *name = strncmp(word, "--", 2) == 0 ? word + 2 : "";
        size_t name_len = strcspn(name, "=");
        const struct flag *flag = find(flags, len, name, name_len);
        if (strcmp(word, "-h") == 0)
            flag = find(flags, len, "help", 4);
        if (!flag && name_len == 0)
            return err_set(err, EINVAL, "%s takes only options, not '%s'; see '%s --help'", program, word, program);
        if (!flag)
            return err_set(err, EINVAL, "unknown option %.*s; see '%s --help'", (int)name_len + 2, word, program);
        const char *value = name[name_len] ? name + name_len + 1 : NULL;
        if (flag->kind == FLAG_SWITCH && value)
            return err_set(err, EINVAL, "--%s takes no value", flag->name);
        if (flag->kind == FLAG_SWITCH) {
            *(bool *)((char *)ret + flag->at) = true;
            continue;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        int rc = value_set(flag, value, ret, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

void flags_print(const struct flag *flags, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++) {
        char left[64];
        if (!flags[i].help)
            continue;
        (void)snprintf(left, sizeof left, "--%s%s%s", flags[i].name, flags[i].value ? " " : "",
                       flags[i].value ? flags[i].value : "");
        (void)fprintf(to, "  %-24s %s\n", left, flags[i].help);
    }
}

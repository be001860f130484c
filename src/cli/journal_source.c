#include "cli/journal_source.h"

#include <string.h>

#include "base/str.h"
#include "wire/moment.h"

int journal_source_open(struct cli *cli, const char *data, const struct operands *operands, struct journal **ret)
{
    struct journal_sources sources = {.data = data, .files = operands->at, .files_len = operands->len};
    struct berth_err err;
    if (!data && operands->len == 0)
        return cli_fail(cli, EXIT_USAGE,
                        "which journal? Give the folder of its daemon, berth %s --data DIR, or segments of it: berth "
                        "%s 000001.seg ...",
                        cli->command->name, cli->command->name);
    if (data && operands->len)
        return cli_fail(cli, EXIT_USAGE, "either --data DIR or files, not both");
    if (journal_open(&sources, ret, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    return EXIT_OK;
}

int journal_bound_read(struct cli *cli, const char *option, const char *text, struct journal_bound *ret)
{
    CLEANUP(str) struct str full = {0};
    *ret = (struct journal_bound){0};
    if (!text)
        return EXIT_OK;
    if (strlen(text) > 0 && strspn(text, "0123456789") == strlen(text)) {
        int64_t n = 0;
        if (str_parse_i64(text, &n) && n > 0) {
            ret->number = (uint64_t)n;
            return EXIT_OK;
        }
    }
    str_add(&full, text);
    if (strlen(text) == 10)
        str_add(&full, "T00:00:00Z");
    if (timestamp_parse_text(full.at, &ret->ns, NULL) == 0)
        return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE,
                    "--%s is a number, a day such as 2026-11-16 or a moment such as 2026-11-16T09:30:00Z, not '%s'",
                    option, text);
}

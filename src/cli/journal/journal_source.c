#include "cli/journal/journal_source.h"

#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/show/listing.h"
#include "cli/slurm/time_text.h"
#include "wire/doc/api.h"
#include "wire/text/moment.h"

int journal_source_open(struct cli *cli, const char *data, const struct operands *operands, struct journal **ret)
{
    struct journal_sources sources = {.data = data, .files = operands->at, .files_len = operands->len};
    struct journal_sources folder = {.data = operands->len == 1 ? operands->at[0] : NULL};
    struct berth_err err;
    struct stat st;
    if (!data && operands->len == 0)
        return cli_fail(cli, EXIT_USAGE,
                        "no journal: expected the folder of its daemon (berth %s DIR) or segments (berth %s "
                        "000001.seg ...)",
                        cli->command->name, cli->command->name);
    if (data && operands->len)
        return cli_fail(cli, EXIT_USAGE, "--data cannot be combined with files");
    if (folder.data && stat(folder.data, &st) == 0 && S_ISDIR(st.st_mode) && journal_open(&folder, ret, &err) == 0)
        return EXIT_OK;
    if (journal_open(&sources, ret, &err) < 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    return EXIT_OK;
}

int journal_time_read(struct cli *cli, const char *option, const char *text, int64_t *ret_ns)
{
    char moment[SPAN_TEXT_MAX];
    struct berth_err err;
    *ret_ns = 0;
    if (!text)
        return EXIT_OK;
    if (past_time_read(text, wall_clock_ns(), moment, &err) == 0 && timestamp_parse_text(moment, ret_ns, &err) == 0)
        return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "--%s: %s", option, err.text);
}

int journal_bound_read(struct cli *cli, const char *option, const char *text, struct journal_bound *ret)
{
    *ret = (struct journal_bound){0};
    if (text && strlen(text) > 0 && strspn(text, "0123456789") == strlen(text)) {
        int64_t n = 0;
        if (!str_parse_i64(text, &n) || n <= 0)
            return cli_fail(cli, EXIT_USAGE, "--%s: '%s' is not a number of at least 1", option, text);
        ret->number = (uint64_t)n;
        return EXIT_OK;
    }
    return journal_time_read(cli, option, text, &ret->ns);
}

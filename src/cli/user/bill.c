/* bill.c - `berth bill`: usage converted to money by a file of prices. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bill/bill.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"

struct bill_values {
    const char *prices, *month, *user, *group;
    unsigned by, form;
};

static const char *const by_choices[] = {"user", "group", NULL};
static const char *const form_choices[] = {"table", "json", "csv", NULL};

static const struct option bill_options[] = {
    OPTION_TEXT_ROW("prices", 'p', bill_values, prices, "FILE", "Price file with the costs per hour; required."),
    OPTION_TEXT_ROW("month", 'm', bill_values, month, "MONTH", "Show only this month, such as 2026-03."),
    OPTION_TEXT_ROW("user", 'u', bill_values, user, "NAME", "Show only this user."),
    OPTION_TEXT_ROW("group", 'g', bill_values, group, "NAME", "Show only this group."),
    OPTION_CHOICE_ROW("by", 0, bill_values, by, by_choices, "Print one line per user or group."),
    OPTION_CHOICE_ROW("output", 'o', bill_values, form, form_choices, "Output format."),
};

struct bill_request {
    struct api *api;
    int code; /* exit code of an error already printed; EXIT_OK: none */
};

static int get(void *ctx, const char *path, json_t **ret, struct berth_err *err)
{
    struct bill_request *a = ctx;
    a->code = api_get(a->api, path, ret);
    return a->code == EXIT_OK ? 0 : err_set(err, EIO, "already reported");
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct bill_values *v = values;
    struct prices prices = {0};
    struct berth_err err = {0};
    CLEANUP(book) struct usage_book book = {0};
    CLEANUP(api) struct api api = {0};
    struct bill_request bill_request = {.api = &api, .code = EXIT_OK};
    struct bill_server server = {.ctx = &bill_request, .get = get};
    (void)operands;
    if (!v->prices)
        return cli_fail(cli, EXIT_USAGE, "--prices FILE is required; docs/billing.md has an example of a price file");
    if (v->month && !month_valid(v->month))
        return cli_fail(cli, EXIT_USAGE, "--month is a year and a month such as 2026-03, not '%s'", v->month);
    if (prices_read(v->prices, &prices, &err) < 0)
        return cli_fail(cli, EXIT_USAGE, "%s", err.text);
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK && bill_follow(&book, &server, NULL, &err) < 0)
        rc = bill_request.code != EXIT_OK ? bill_request.code : cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (rc == EXIT_OK) {
        struct bill_question q = {
            .by = v->by ? BILL_BY_GROUP : BILL_BY_USER, .month = v->month, .user = v->user, .group = v->group};
        static const enum bill_form forms[] = {BILL_TABLE, BILL_JSON, BILL_CSV};
        CLEANUP(bill) struct bill bill;
        bill_make(&book, &prices, &q, &bill);
        bill_print(&bill, &prices, forms[v->form], cli->out);
    }
    prices_done(&prices);
    return rc;
}

const struct command bill_command = {
    .name = "bill",
    .operands = "",
    .summary = "Show the cost of past usage, computed from a price file.",
    .text = "Reads the usage records that the server still has. For a permanent book and for budgets "
            "use the program berth-bill with the same price file.",
    .examples =
        "  berth bill --prices prices.yaml --month 2026-03\n  berth bill --prices prices.yaml --by group -o csv",
    .options = bill_options,
    .options_len = sizeof bill_options / sizeof *bill_options,
    .values_size = sizeof(struct bill_values),
    .section = SECTION_PEOPLE,
    .talks = true,
    .run = run,
};

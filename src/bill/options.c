#include "bill/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"

#define AT(field) offsetof(struct bill_options, field)
static const struct flag flags[] = {
    {"prices",     FLAG_TEXT,   AT(prices),     "FILE",  0, 0, "what an hour costs, and budgets; must be given"            },
    {"book",       FLAG_TEXT,   AT(book),       "FILE",  0, 0, "where is kept what was used; must be given"                },
    {"month",      FLAG_TEXT,   AT(month),      "MONTH", 0, 0, "only this one, such as 2026-03"                            },
    {"user",       FLAG_TEXT,   AT(user),       "NAME",  0, 0, "only this user"                                            },
    {"group",      FLAG_TEXT,   AT(group),      "NAME",  0, 0, "only this group"                                           },
    {"by",         FLAG_TEXT,   AT(by_name),    "WHAT",  0, 0, "a line for each user or group; user if not given"          },
    {"output",     FLAG_TEXT,   AT(form_name),  "FORM",  0, 0, "table, json or csv; table if not given"                    },
    {"enforce",    FLAG_SWITCH, AT(enforce),    NULL,    0, 0, "say whose budget is spent, and what would be done about it"},
    {"really",     FLAG_SWITCH, AT(really),     NULL,    0, 0, "with --enforce: do it"                                     },
    {"no-fetch",   FLAG_SWITCH, AT(no_fetch),   NULL,    0, 0, "only what is in the book already; asks no server"          },
    {"server",     FLAG_TEXT,   AT(server),     "URL",   0, 0, "else $BERTH_SERVER, or http://127.0.0.1:3980"              },
    {"token-file", FLAG_TEXT,   AT(token_file), "FILE",  0, 0,
     "has the token in it; else $BERTH_TOKEN or $BERTH_TOKEN_FILE"                                                         },
    {"ca",         FLAG_TEXT,   AT(ca),         "FILE",  0, 0, "certificates to trust instead of the system's"             },
    {"pin",        FLAG_TEXT,   AT(pin),        "PIN",   0, 0, "trust exactly this key (sha256//...)"                      },
    {"version",    FLAG_SWITCH, AT(version),    NULL,    0, 0, "print the version"                                         },
    {"help",       FLAG_SWITCH, AT(help),       NULL,    0, 0, "print this"                                                },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static int choice(const char *what, const char *name, const char *const *names, size_t len, unsigned *ret,
                  const char *all, struct berth_err *err)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (unsigned)i;
            return 0;
        }
    return err_set(err, EINVAL, "%s is %s, not '%s'", what, all, name);
}

int bill_form_find(const char *name, enum bill_form *ret, struct berth_err *err)
{
    static const char *const names[] = {[BILL_TABLE] = "table", [BILL_JSON] = "json", [BILL_CSV] = "csv"};
    unsigned at = 0;
    int rc = choice("--output", name, names, 3, &at, "table, json or csv", err);
    if (rc == 0)
        *ret = (enum bill_form)at;
    return rc;
}

int bill_by_find(const char *name, enum bill_by *ret, struct berth_err *err)
{
    static const char *const names[] = {[BILL_BY_USER] = "user", [BILL_BY_GROUP] = "group"};
    unsigned at = 0;
    int rc = choice("--by", name, names, 2, &at, "user or group", err);
    if (rc == 0)
        *ret = (enum bill_by)at;
    return rc;
}

int bill_options_read(int argc, char *const *argv, struct bill_options *ret, struct berth_err *err)
{
    *ret = (struct bill_options){0};
    int rc = flags_read("berth-bill", flags, FLAGS, argc, argv, ret, err);
    if (rc < 0 || ret->help || ret->version)
        return rc;
    if (!ret->prices)
        return err_set(err, EINVAL, "--prices FILE must be given: what an hour costs; see berth-bill --help");
    if (!ret->book)
        return err_set(err, EINVAL, "--book FILE must be given: where is kept what was used");
    if (ret->month && !month_valid(ret->month))
        return err_set(err, EINVAL, "--month is a year and a month such as 2026-03, not '%s'", ret->month);
    if (ret->really && !ret->enforce)
        return err_set(err, EINVAL, "--really is for --enforce; give both");
    if (ret->enforce && ret->no_fetch)
        return err_set(err, EINVAL, "--enforce needs the server; leave --no-fetch out");
    rc = ret->form_name ? bill_form_find(ret->form_name, &ret->form, err) : 0;
    return rc == 0 && ret->by_name ? bill_by_find(ret->by_name, &ret->by, err) : rc;
}

void bill_options_help(FILE *to)
{
    (void)fprintf(to, "berth-bill - turns what was used into bills, and budgets into limits.\n\n"
                      "usage: berth-bill --prices FILE --book FILE [OPTION...]\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to,
        "\nFetches what was used since the last time, adds it to the book, and prints the bill. With --enforce it\n"
        "lowers the limits of whoever has spent a budget, and restores them in the next month; without --really it\n"
        "only says so. Run it from a timer. The file of prices is described in docs/billing.md.\n"
        "\nexample:\n  berth-bill --prices prices.yaml --book /var/lib/berth-bill/book.json --month 2026-03\n"
        "\nexit codes: 0 done, 1 failure, 2 the command line is wrong\n");
}

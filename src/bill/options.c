#include "bill/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"

#define AT(field) offsetof(struct bill_options, field)
static const struct flag flags[] = {
    {"prices",     FLAG_TEXT,   AT(prices),     "FILE",  0, 0, "price file with costs per hour and budgets; required"   },
    {"book",       FLAG_TEXT,   AT(book),       "FILE",  0, 0, "file that stores the usage; required"                   },
    {"month",      FLAG_TEXT,   AT(month),      "MONTH", 0, 0, "show only this month, such as 2026-03"                  },
    {"user",       FLAG_TEXT,   AT(user),       "NAME",  0, 0, "show only this user"                                    },
    {"group",      FLAG_TEXT,   AT(group),      "NAME",  0, 0, "show only this group"                                   },
    {"by",         FLAG_TEXT,   AT(by_name),    "WHAT",  0, 0, "one line per user or group (default: user)"             },
    {"output",     FLAG_TEXT,   AT(form_name),  "FORM",  0, 0, "output format: table (default), json or csv"            },
    {"enforce",    FLAG_SWITCH, AT(enforce),    NULL,    0, 0, "show spent budgets and the limits that would be lowered"},
    {"really",     FLAG_SWITCH, AT(really),     NULL,    0, 0, "with --enforce: change the limits"                      },
    {"no-fetch",   FLAG_SWITCH, AT(no_fetch),   NULL,    0, 0, "use only the book, without contacting a server"         },
    {"server",     FLAG_TEXT,   AT(server),     "URL",   0, 0, "URL (default: $BERTH_SERVER or http://127.0.0.1:3980)"  },
    {"token-file", FLAG_TEXT,   AT(token_file), "FILE",  0, 0, "token (default: $BERTH_TOKEN or $BERTH_TOKEN_FILE)"     },
    {"ca",         FLAG_TEXT,   AT(ca),         "FILE",  0, 0, "trust these CA certificates instead of the system's"    },
    {"pin",        FLAG_TEXT,   AT(pin),        "PIN",   0, 0, "trust only this public key (sha256//...)"               },
    {"version",    FLAG_SWITCH, AT(version),    NULL,    0, 0, "print the version"                                      },
    {"help",       FLAG_SWITCH, AT(help),       NULL,    0, 0, "print this help"                                        },
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
    return err_set(err, EINVAL, "%s must be %s, not '%s'", what, all, name);
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
        return err_set(err, EINVAL, "--prices FILE is required; see berth-bill --help");
    if (!ret->book)
        return err_set(err, EINVAL, "--book FILE is required; see berth-bill --help");
    if (ret->month && !month_valid(ret->month))
        return err_set(err, EINVAL, "--month is a year and a month such as 2026-03, not '%s'", ret->month);
    if (ret->really && !ret->enforce)
        return err_set(err, EINVAL, "--really needs --enforce");
    if (ret->enforce && ret->no_fetch)
        return err_set(err, EINVAL, "--enforce cannot be combined with --no-fetch");
    rc = ret->form_name ? bill_form_find(ret->form_name, &ret->form, err) : 0;
    return rc == 0 && ret->by_name ? bill_by_find(ret->by_name, &ret->by, err) : rc;
}

void bill_options_help(FILE *to)
{
    (void)fprintf(to, "berth-bill - computes bills from usage and enforces budgets as limits.\n\n"
                      "usage: berth-bill --prices FILE --book FILE [OPTION...]\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to, "\n"
                      "Fetches the usage since the last run, adds it to the book, and prints the bill. With "
                      "--enforce it shows\n"
                      "which users and groups have spent their budgets; with --really it also lowers their "
                      "limits, and restores\n"
                      "them in the next month. Run it from a timer. The price file is described in "
                      "docs/billing.md.\n\n"
                      "example:\n"
                      "  berth-bill --prices prices.yaml --book /var/lib/berth-bill/book.json --month "
                      "2026-03\n\n"
                      "exit codes: 0 success, 1 failure, 2 invalid command line\n");
}

/* options.h - the command line of berth-bill. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "bill/bill.h"

struct bill_options {
    const char *prices, *book;
    const char *server, *token_file, *ca, *pin;
    const char *month, *user, *group, *by_name, *form_name;
    bool enforce, really, no_fetch, help, version;
    enum bill_by by;
    enum bill_form form;
};

/* Returns -EINVAL with the reason. The strings point into argv. */
int bill_options_read(int argc, char *const *argv, struct bill_options *ret, struct berth_err *err);
void bill_options_help(FILE *to);
/* Parse "table", "json" or "csv"; "user" or "group". -EINVAL for other words. */
int bill_form_find(const char *name, enum bill_form *ret, struct berth_err *err);
int bill_by_find(const char *name, enum bill_by *ret, struct berth_err *err);

#include "cli/lib/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct human_text show_count(uint64_t n)
{
    struct human_text shown;
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            shown.text[at++] = ',';
        shown.text[at++] = digits[i];
    }
    shown.text[at] = '\0';
    return shown;
}

struct human_text show_seconds(double seconds)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {
        {1e-6, "us"},
        {1e-3, "ms"},
        {1,    "s" }
    };
    struct human_text shown;
    size_t i = seconds < 1e-4 ? 0 : seconds < 0.9995 ? 1 : 2;
    double n = seconds / units[i].unit;

    snprintf(shown.text, sizeof shown.text, "%.*f %s", n < 9.95 ? 2 : n < 99.5 ? 1 : 0, n, units[i].name);
    return shown;
}

struct human_text show_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct human_text shown;
    double n = (double)bytes;
    size_t i = 0;

    for (; n >= 999.5 && i + 1 < sizeof units / sizeof units[0]; i++)
        n /= 1024;
    snprintf(shown.text, sizeof shown.text, "%.*f %s", i > 0 && n < 9.95 ? 2 : 0, n, units[i]);
    return shown;
}

struct human_text show_ratio(double ratio)
{
    struct human_text shown;

    snprintf(shown.text, sizeof shown.text, "%.2fx", ratio);
    return shown;
}

struct human_text show_age(int64_t seconds)
{
    static const struct {
        int64_t unit, until; /* this unit is used below `until` units */
        char letter;
    } rows[] = {
        {1,                 120, 's'},
        {60,                120, 'm'},
        {3600,              48,  'h'},
        {86400,             730, 'd'},
        {(int64_t)31556952, 0,   'y'}
    };
    struct human_text shown;
    size_t i = 0;

    if (seconds < 0)
        seconds = 0;
    while (rows[i].until && seconds / rows[i].unit >= rows[i].until)
        i++;
    snprintf(shown.text, sizeof shown.text, "%" PRId64 "%c", seconds / rows[i].unit, rows[i].letter);
    return shown;
}

const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* human.h - formats numbers for people. */
#pragma once

#include <stdint.h>

struct human_text {
    char text[40];
};

struct human_text show_count(uint64_t n);       /* 1,562 */
struct human_text show_seconds(double seconds); /* 0.21 ms, 38 ms, 1.25 s */
struct human_text show_bytes(uint64_t bytes);   /* 812 MiB */
struct human_text show_ratio(double ratio);     /* 1.8x */
struct human_text show_age(int64_t seconds);    /* 45s, 3m, 5h, 12d, 3y; negative ages are 0s */
const char *plural(uint64_t n);                 /* "" for one, else "s" */

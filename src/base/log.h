/* log.h - structured log lines: one line per event, with `key=value` pairs for people and programs.
 *
 *     time=2026-03-01T12:00:00.250Z level=warn event=node.lost node=n17 silent_s=31 text="no report"
 *
 * The time and the output file are arguments: there is no clock and no global logger. Values are quoted, so a hostile
 * name cannot forge a second line or send escape sequences to a terminal. The log is not a journal: lines may be
 * filtered, and a failed write is ignored.
 *
 * To add a kind of value: a member of enum log_kind, a LOG_ macro, and a case in log.c.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum log_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };

struct log {
    FILE *out;            /* borrowed; NULL disables logging */
    enum log_level level; /* lowest level that is written */
};

enum log_kind { LOG_KIND_TEXT, LOG_KIND_NUMBER };

struct log_field {
    const char *key; /* fixed by the program: letters, digits, '_', '.' */
    enum log_kind kind;
    const char *text; /* NULL counts as "" */
    int64_t number;
};

/* A text value is truncated after this many bytes. */
enum { LOG_TEXT_MAX = 2048 };

#define LOG_TEXT(key_, text_) ((struct log_field){.key = (key_), .kind = LOG_KIND_TEXT, .text = (text_)})
#define LOG_NUMBER(key_, number_) ((struct log_field){.key = (key_), .kind = LOG_KIND_NUMBER, .number = (number_)})

/* Writes one line: log_write(&log, now_ns, LEVEL_WARN, "node.lost", LOG_TEXT("node", name), LOG_NUMBER("silent_s", s)).
 * now_ns counts nanoseconds since 1970, UTC. The line is written with a single write. */
#define log_write(log, now_ns, level, event, ...)                                                                      \
    log_fields((log), (now_ns), (level),                                                                               \
               (const struct log_field[]){LOG_TEXT("event", (event)), ##__VA_ARGS__, {.key = NULL}})

/* Like log_write, but takes an array of fields that ends with a NULL key. */
void log_fields(const struct log *log, int64_t now_ns, enum log_level level, const struct log_field *fields);

/* Returns the level with this name ("debug", "info", "warn", "error"), or -1. */
int log_level_parse(const char *name);

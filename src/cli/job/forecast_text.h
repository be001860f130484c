/* forecast_text.h - where work stands and when it will start, in words; shared by the verbs that tell it. */
#pragma once

#include <jansson.h>

#include "cli/lib/cli.h"

enum { WHEN_TEXT_MAX = 48 };

/* "now", "in 25m", "in 1h30m", "3h ago"; "" where there is no time. */
const char *when_text(const json_t *time, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* Seconds from now until then, negative if it is over; false: there is no time. */
bool when_seconds(const json_t *time, int64_t now_ns, int64_t *ret_s);
/* The same as text of the time `key` of an object, which is a guess where it has KEY_guess: "in ~25m", never below a
 * minute. */
const char *expected_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* How much time is left until then: "25m"; "~25m" of a guess; "" where there is no time. */
const char *left_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* "4 x 2 gpu, 8 cpu, 32Gi": what an `asked` object says, in the caller's buffer. */
const char *asked_text(const json_t *asked, char *buf, size_t size);
/* "by right", "borrowed", "spare"; "" where it says nothing. */
const char *tier_text(const json_t *standing);
/* "user ann", "a user of group vision", "somebody". */
const char *holder_text(const json_t *holder, char *buf, size_t size);

/* Why it waits, in two or three words: "too little cpu", "too few GPUs"; `why` has "reason" and "what". */
const char *reason_text(const json_t *why, char *buf, size_t size);

/* A sentence below a heading, indented and wrapped. */
void sentence_print(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Position, tier, ranking, reservation: some sentences. */
void standing_print(const struct cli *cli, const json_t *standing, int64_t now_ns);
/* Each factor that has a weight, with its value and product; of a formula (`all`) those that are not 0. */
void factors_print(const struct cli *cli, const json_t *factors, bool all);
/* Each reason with its counts. */
void reasons_print(const struct cli *cli, const json_t *reasons);
/* Who holds what is waited for. */
void blockers_print(const struct cli *cli, const json_t *blockers, int64_t now_ns);
/* What would start sooner. */
void sooner_print(const struct cli *cli, const json_t *sooner, int64_t now_ns);
/* "by the plan of revision 17, 3s ago" */
void forecast_label_print(const struct cli *cli, const json_t *forecast, int64_t now_ns);

/* The `forecast` of a dry run of POST /v1/jobs: would it start, where would it stand, what would start sooner. */
void draft_print(const struct cli *cli, const json_t *forecast, int64_t now_ns);

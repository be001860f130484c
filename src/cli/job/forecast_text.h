/* forecast_text.h - prints queue positions and expected starts in words; shared by several verbs. */
#pragma once

#include <jansson.h>

#include "cli/lib/cli.h"

enum { WHEN_TEXT_MAX = 48 };

/* Returns "now", "in 25m", "in 1h30m" or "3h ago"; "" without a time. */
const char *when_text(const json_t *time, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* Sets *ret_s to the seconds until `time`, negative for past times. Returns false without a time. */
bool when_seconds(const json_t *time, int64_t now_ns, int64_t *ret_s);
/* Formats the time `key` of an object like when_text. If the object has KEY_guess, the time is an estimate: "in ~25m",
 * at least a minute. */
const char *expected_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* Returns the time left until the time `key`: "25m"; "~25m" for an estimate; "" without a time. */
const char *time_left_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX]);
/* Formats an `asked` object, such as "4 x 2 gpu, 8 cpu, 32Gi", into the caller's buffer. */
const char *requested_text(const json_t *asked, char *buf, size_t size);
/* Returns "guaranteed", "borrowed" or "spare"; "" if the tier is unknown. */
const char *tier_text(const json_t *standing);
/* Returns "user ann", "a user of group vision" or "another user". */
const char *holder_text(const json_t *holder, char *buf, size_t size);

/* Returns why the job waits, in a few words: "insufficient cpu", "too few GPUs"; `why` has "reason" and "what". */
const char *reason_text(const json_t *why, char *buf, size_t size);

/* Prints a sentence below a heading, indented and wrapped. */
void sentence_print(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints position, tier, ranking and reservation as sentences. */
void queue_position_print(const struct cli *cli, const json_t *standing, int64_t now_ns);
/* Prints each factor with a weight, its value and the product; for a formula (`all`) the factors that are not 0. */
void factors_print(const struct cli *cli, const json_t *factors, bool all);
/* Prints each reason with its counts. */
void reasons_print(const struct cli *cli, const json_t *reasons);
/* Prints the current holders of the resources that the job waits for. */
void blockers_print(const struct cli *cli, const json_t *blockers, int64_t now_ns);
/* Prints changes that would start the job sooner. */
void sooner_print(const struct cli *cli, const json_t *sooner, int64_t now_ns);
/* Prints "by the plan of revision 17, 3s ago". */
void forecast_label_print(const struct cli *cli, const json_t *forecast, int64_t now_ns);

/* Prints the `forecast` of a dry run of POST /v1/jobs: whether the job would start, its queue position, changes that
 * would start it sooner. */
void draft_print(const struct cli *cli, const json_t *forecast, int64_t now_ns);

/* replay_main.c - `berth-kube replay`: makes every plan of a journal again and compares. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/flag.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "journal/reader.h"
#include "kube/journal/replay.h"
#include "wire/doc/api.h"
#include "wire/text/moment.h"

#define PROGRAM "berth-kube replay"
enum { EXIT_USAGE = 2, TOLD_MAX = 20, ACTIONS_MAX = 20 };

struct replay_flags {
    const char *from, *to, *output;
    bool help;
};

#define AT(field) offsetof(struct replay_flags, field)
static const struct flag flags[] = {
    {"from",   FLAG_TEXT,   AT(from),   "WHEN", 0, 0, "first plan or time to compare"     },
    {"to",     FLAG_TEXT,   AT(to),     "WHEN", 0, 0, "last plan or time to compare"      },
    {"output", FLAG_TEXT,   AT(output), "FORM", 0, 0, "or -o: output format, text or json"},
    {"help",   FLAG_SWITCH, AT(help),   NULL,   0, 0, "print this help"                   },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

struct difference_printer {
    FILE *out;
    json_t *list; /* list of differences; NULL: they are printed as they are found */
    uint64_t told;
};

static void help(FILE *to)
{
    (void)fprintf(to, "berth-kube replay - recomputes every plan of a journal and compares the results.\n\n"
                      "usage: " PROGRAM " DIR [OPTION...]\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to,
        "\nDIR is the folder of --journal (berth-kube may be running), a segment, a folder of segments, or a file "
        "written\n"
        "by 'berth journal export'. WHEN is the number of a plan, a date or a time.\n"
        "\nexample:\n  " PROGRAM " /var/lib/berth-kube --from 2026-11-16T09:30:00Z\n"
        "\nexit codes: 0 no differences, 1 differences, unreadable records or no plan to compare, 2 invalid command "
        "line\n");
}

/* ---- differences ------------------------------------------------------------------------------------------------ */

/* Compares actions; scores are informational and ignored. */
static bool same_action(const json_t *a, const json_t *b)
{
    for (size_t i = 0; i < 6; i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        if (!x || !y || !json_equal(x, y))
            return false;
    }
    return true;
}

static bool has_action(const json_t *list, const json_t *action)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (same_action(json_array_get(list, i), action))
            return true;
    return false;
}

static const char *text_at(const json_t *list, size_t i)
{
    const char *text = json_string_value(json_array_get(list, i));
    return text ? text : "?";
}

static void actions_print(FILE *out, const char *mark, const json_t *list, const json_t *other)
{
    size_t shown = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *a = json_array_get(list, i);
        if (has_action(other, a) || ++shown > ACTIONS_MAX)
            continue;
        const char *node = text_at(a, 3);
        (void)fprintf(out, "    %s %s %s/%" PRId64 "%s%s (%s)\n", mark, text_at(a, 0), text_at(a, 1),
                      (int64_t)json_integer_value(json_array_get(a, 2)), *node ? " on " : "", node, text_at(a, 5));
    }
    if (shown > ACTIONS_MAX)
        (void)fprintf(out, "    %s and %zu more\n", mark, shown - ACTIONS_MAX);
}

static void difference_list(struct difference_printer *t, const struct kube_replay_difference *d)
{
    char recorded[20], replayed[20];
    (void)snprintf(recorded, sizeof recorded, "%016" PRIx64, d->recorded);
    (void)snprintf(replayed, sizeof replayed, "%016" PRIx64, d->replayed);
    json_array_append_new(t->list, json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:O?, s:O?}", "plan", (json_int_t)d->plan,
                                             "record", (json_int_t)d->record, "now", (json_int_t)d->now_ns, "recorded",
                                             recorded, "replayed", replayed, "input", d->input, "actions", d->actions,
                                             "actions_replayed", d->actions_replayed));
}

static void on_difference(void *ctx, const struct kube_replay_difference *d)
{
    struct difference_printer *t = ctx;
    char now[TIMESTAMP_MAX];
    if (++t->told > TOLD_MAX)
        return;
    if (t->list) {
        difference_list(t, d);
        return;
    }
    (void)fprintf(t->out,
                  "plan %" PRIu64 " (%s, record %" PRIu64 "): recorded %016" PRIx64 ", replayed %016" PRIx64 "\n",
                  d->plan, timestamp_text(d->now_ns, now), d->record, d->recorded, d->replayed);
    (void)fprintf(t->out, "  %s\n", *d->input ? d->input : "all inputs are equal: this build decides differently");
    (void)fprintf(t->out, "  recorded %zu actions (-), replayed %zu (+):\n", json_array_size(d->actions),
                  json_array_size(d->actions_replayed));
    actions_print(t->out, "-", d->actions, d->actions_replayed);
    actions_print(t->out, "+", d->actions_replayed, d->actions);
}

static void result_print(const struct difference_printer *t, const struct kube_replay_result *r)
{
    if (t->list) {
        json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "records", (json_int_t)r->records, "inputs",
                                (json_int_t)r->inputs, "bases", (json_int_t)r->bases, "plans", (json_int_t)r->plans,
                                "different", (json_int_t)r->different, "skipped", (json_int_t)r->skipped, "gaps",
                                (json_int_t)r->gaps, "differences", t->list);
        (void)json_dumpf(all, t->out, JSON_COMPACT);
        (void)fprintf(t->out, "\n");
        json_decref(all);
        return;
    }
    if (r->different > TOLD_MAX)
        (void)fprintf(t->out, "And %" PRIu64 " more.\n", r->different - TOLD_MAX);
    (void)fprintf(t->out, "%" PRIu64 " records, %" PRIu64 " inputs, %" PRIu64 " plans recomputed: ", r->records,
                  r->inputs, r->plans);
    if (r->different)
        (void)fprintf(t->out, "%" PRIu64 " differ.\n", r->different);
    else
        (void)fprintf(t->out, "%s\n", r->plans ? "no differences." : "no plans.");
    if (r->gaps)
        (void)fprintf(t->out, "Records are missing in %" PRIu64 " places.\n", r->gaps);
    if (r->skipped)
        (void)fprintf(t->out, "%" PRIu64 " plans could not be recomputed: earlier records are missing.\n", r->skipped);
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static int bound_read(const char *option, const char *text, uint64_t *ret_plan, int64_t *ret_ns, struct berth_err *err)
{
    CLEANUP(str) struct str full = {0};
    int64_t n;
    if (!text)
        return 0;
    if (strspn(text, "0123456789") == strlen(text) && str_parse_i64(text, &n) && n > 0) {
        *ret_plan = (uint64_t)n;
        return 0;
    }
    str_add(&full, text);
    if (strlen(text) == 10)
        str_add(&full, "T00:00:00Z");
    if (timestamp_parse_text(full.at, ret_ns, NULL) == 0)
        return 0;
    return err_set(err, EINVAL,
                   "--%s must be a number, a date such as 2026-11-16 or a time such as 2026-11-16T09:30:00Z, not '%s'",
                   option, text);
}

/* Parses the command line; DIR may be anywhere among the options. */
static int line_read(int argc, char *const *argv, const char **ret_dir, struct replay_flags *ret, struct berth_err *err)
{
    static char output[] = "--output";
    VEC(char *) rest = {0};
    int rc = 0;
    *ret_dir = NULL;
    for (int i = 0; i < argc; i++) {
        bool takes = i > 1 && (strncmp(argv[i - 1], "--", 2) == 0 || strcmp(argv[i - 1], "-o") == 0) &&
                     !strchr(argv[i - 1], '=');
        if (i > 0 && argv[i][0] != '-' && !takes && !*ret_dir)
            *ret_dir = argv[i];
        else
            vec_push(&rest, strcmp(argv[i], "-o") == 0 ? output : argv[i]);
    }
    rc = flags_read(PROGRAM, flags, FLAGS, (int)rest.len, rest.at, ret, err);
    vec_done(&rest);
    if (rc < 0 || ret->help)
        return rc;
    if (!*ret_dir)
        return err_set(err, EINVAL, "missing argument, the folder of a journal: " PROGRAM " DIR");
    if (strcmp(ret->output, "text") != 0 && strcmp(ret->output, "json") != 0)
        return err_set(err, EINVAL, "--output must be text or json, not '%s'", ret->output);
    return 0;
}

/* The folder of --journal contains a store. */
static int sources_open(const char *dir, struct journal **ret, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/store.db", dir);
    FILE *store = fopen(path.at, "re");
    bool data = store != NULL;
    if (store)
        (void)fclose(store);
    const struct journal_sources sources = {
        .data = data ? dir : NULL, .files = data ? NULL : &dir, .files_len = data ? 0 : 1};
    return journal_open(&sources, ret, err);
}

int kube_replay_main(int argc, char *const *argv, FILE *out)
{
    struct replay_flags f = {.output = "text"};
    struct berth_err err = {0};
    struct kube_replay_options o = {.differs = on_difference};
    struct kube_replay_result result;
    struct difference_printer t = {.out = out};
    const char *dir;
    CLEANUP(journal) struct journal *journal = NULL;
    int rc = line_read(argc, argv, &dir, &f, &err);
    if (rc == 0 && f.help) {
        help(out);
        return fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (rc == 0)
        rc = bound_read("from", f.from, &o.from_plan, &o.from_ns, &err);
    if (rc == 0)
        rc = bound_read("to", f.to, &o.to_plan, &o.to_ns, &err);
    if (rc < 0) {
        (void)fprintf(stderr, PROGRAM ": %s\n", err.text);
        return EXIT_USAGE;
    }
    o.ctx = &t;
    t.list = strcmp(f.output, "json") == 0 ? json_array() : NULL;
    rc = sources_open(dir, &journal, &err);
    if (rc == 0)
        rc = kube_replay(journal, &o, &result, &err);
    if (rc == 0)
        result_print(&t, &result);
    else
        (void)fprintf(stderr, PROGRAM ": %s\n", err.text);
    json_decref(t.list);
    bool shown = rc == 0 && !result.different &&
                 (result.plans || !result.skipped); /* a replay that could make no plan proves nothing */
    return shown && fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

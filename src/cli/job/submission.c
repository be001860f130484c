#include "cli/job/submission.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/job/script.h"
#include "cli/show/listing.h"
#include "cli/slurm/time_text.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"
#include "wire/text/yaml_write.h"

extern char **environ;

/* Values that are copied, and values that are converted: durations, times, ranges, numbers. */
enum text_form { FORM_TEXT, FORM_DURATION, FORM_TIME, FORM_RANGE, FORM_NUMBER };

#define AT(field) offsetof(struct submission_values, field)
static const struct {
    const char *option, *key;
    size_t at;
    enum text_form form;
} texts[] = {
    {"name",       "name",       AT(name),       FORM_TEXT    },
    {"queue",      "queue",      AT(queue),      FORM_TEXT    },
    {"time",       "time_limit", AT(time),       FORM_DURATION},
    {"estimate",   "estimate",   AT(estimate),   FORM_DURATION},
    {"min-run",    "min_run",    AT(min_run),    FORM_DURATION},
    {"deadline",   "deadline",   AT(deadline),   FORM_TIME    },
    {"begin",      "begin",      AT(begin),      FORM_TIME    },
    {"array",      "array",      AT(array),      FORM_RANGE   },
    {"urgency",    "urgency",    AT(urgency),    FORM_NUMBER  },
    {"parameters", "parameters", AT(parameters), FORM_NUMBER  },
    {"type",       "type",       AT(type),       FORM_TEXT    },
    {"class",      "class",      AT(class_name), FORM_TEXT    },
    {"network",    "network",    AT(network),    FORM_TEXT    },
    {"node",       "node",       AT(node),       FORM_TEXT    },
};

static const struct {
    const char *key;
    size_t at;
} counts[] = {
    {"replicas",     AT(tasks)   },
    {"max_per_node", AT(per_node)},
    {"min",          AT(min)     },
    {"max",          AT(max)     },
    {"retries",      AT(retries) },
};

static const struct {
    const char *key;
    size_t at;
    bool value;
} flags[] = {
    {"singleton",   AT(singleton),   true },
    {"hold",        AT(hold),        true },
    {"requeue",     AT(requeue),     true },
    {"requeue",     AT(no_requeue),  false},
    {"preemptible", AT(no_preempt),  false},
    {"interactive", AT(interactive), true },
};

static const struct {
    const char *option, *when;
    size_t at;
} afters[] = {
    {"after",         "ended",   AT(after)        },
    {"after-ok",      "ok",      AT(after_ok)     },
    {"after-failed",  "failed",  AT(after_failed) },
    {"after-started", "started", AT(after_started)},
};
#undef AT

#define FIELD(type, v, offset) ((const type *)((const char *)(v) + (offset)))

/* ---- simple values ---------------------------------------------------------------------------------------------- */

static int text_make(const struct cli *cli, const char *option, const char *key, enum text_form form, const char *text,
                     json_t *ret)
{
    char span[SPAN_TEXT_MAX], range[RANGE_TEXT_MAX];
    struct berth_err err;
    json_t *value = NULL;
    int rc = 0;

    switch (form) {
    case FORM_TEXT: value = json_string(text); break;
    case FORM_DURATION: rc = duration_text_read(text, 1, span, &err); break;
    case FORM_TIME: rc = time_text_read(text, wall_clock_ns(), span, &err); break;
    case FORM_RANGE: rc = range_read(text, range, &err); break;
    case FORM_NUMBER:
        if (yaml_scalar(text, strlen(text), &value) != 0 || !json_is_number(value)) {
            json_decref(value);
            return cli_fail(cli, EXIT_USAGE, "--%s takes a number, not '%s'", option, text);
        }
        break;
    }
    if (rc != 0)
        return cli_fail(cli, EXIT_USAGE, "--%s: %s", option, err.text);
    if (!value && form != FORM_TEXT)
        value = json_string(form == FORM_RANGE ? range : span);
    if (json_object_set_new(ret, key, value) != 0)
        return cli_fail(cli, EXIT_USAGE, "--%s: not UTF-8", option);
    return EXIT_OK;
}

static int texts_make(const struct cli *cli, const struct submission_values *v, json_t *ret)
{
    int rc = EXIT_OK;

    for (size_t i = 0; rc == EXIT_OK && i < sizeof texts / sizeof *texts; i++) {
        const char *text = *FIELD(char *, v, texts[i].at);
        if (text)
            rc = text_make(cli, texts[i].option, texts[i].key, texts[i].form, text, ret);
    }
    if (rc == EXIT_OK && v->nice) {
        rc = text_make(cli, "nice", "urgency", FORM_NUMBER, v->nice, ret);
        json_int_t n = json_integer_value(json_object_get(ret, "urgency"));
        if (rc == EXIT_OK)
            (void)json_object_set_new(ret, "urgency", json_integer(-n));
    }
    return rc;
}

static int numbers_make(const struct cli *cli, const struct submission_values *v, json_t *ret)
{
    bool gang = v->tasks.given || v->min.given || v->max.given;

    if (gang && v->array)
        return cli_fail(cli, EXIT_USAGE, "--array cannot be combined with --tasks, --min or --max");
    if (v->tasks.given && v->max.given && v->tasks.n != v->max.n)
        return cli_fail(cli, EXIT_USAGE, "--tasks and --max cannot be combined");
    if (v->min.given && !v->max.given && !v->tasks.given)
        return cli_fail(cli, EXIT_USAGE, "--min needs --max");
    if (v->requeue && v->no_requeue)
        return cli_fail(cli, EXIT_USAGE, "--requeue and --no-requeue cannot be combined");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const struct option_count *count = FIELD(struct option_count, v, counts[i].at);
        if (count->given)
            (void)json_object_set_new(ret, counts[i].key, json_integer((json_int_t)count->n));
    }
    if (v->tasks.given && v->max.given)
        (void)json_object_del(ret, "max");
    if (gang)
        (void)json_object_set_new(ret, "gang", json_true());
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (*FIELD(bool, v, flags[i].at))
            (void)json_object_set_new(ret, flags[i].key, json_boolean(flags[i].value));
    return EXIT_OK;
}

/* ---- structured values ------------------------------------------------------------------------------------------ */

/* Adds the dependencies "17,18" of each option, in the order of the table. */
static int after_make(const struct cli *cli, const struct submission_values *v, json_t *ret)
{
    CLEANUP(json) json_t *list = json_array();

    for (size_t i = 0; i < sizeof afters / sizeof *afters; i++) {
        const struct option_list *words = FIELD(struct option_list, v, afters[i].at);
        for (size_t w = 0; w < words->len; w++) {
            CLEANUP(mem) char *copy = mem_strdup(words->at[w]);
            char *rest = NULL;
            for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
                const char *number = strncmp(word, "job/", 4) == 0 ? word + 4 : word;
                if (strspn(number, "0123456789") != strlen(number) || !*number || strlen(number) > 18)
                    return cli_fail(cli, EXIT_USAGE,
                                    "--%s takes the number of a job, not '%s'; 'berth get jobs' lists your jobs",
                                    afters[i].option, word);
                (void)json_array_append_new(list, json_pack("{s:I, s:s}", "job", (json_int_t)strtoll(number, NULL, 10),
                                                            "when", afters[i].when));
            }
        }
    }
    if (json_array_size(list))
        (void)json_object_set(ret, "after", list);
    return EXIT_OK;
}

/* Parses "2", "0.5", "A100:2". */
static int gpus_make(const struct cli *cli, const char *text, json_t *ret)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    const char *count = colon ? colon + 1 : text;
    json_t *number = NULL;

    if (!text)
        return EXIT_OK;
    if (yaml_scalar(count, strlen(count), &number) != 0 || !json_is_number(number) || json_number_value(number) <= 0 ||
        (colon && (colon == text || !json_is_integer(number)))) {
        json_decref(number);
        return cli_fail(cli, EXIT_USAGE,
                        "--gpus takes a number such as 2, a model and a number such as A100:2, or a share such "
                        "as 0.5, not '%s'",
                        text);
    }
    if (!colon) {
        (void)json_object_set_new(ret, "gpu", number);
        return EXIT_OK;
    }
    json_t *gpu = json_pack("{s:o}", "count", number);
    (void)json_object_set_new(gpu, "model", json_stringn(text, (size_t)(colon - text)));
    (void)json_object_set_new(ret, "gpu", gpu);
    return EXIT_OK;
}

/* Parses "USR1@60s". */
static int checkpoint_make(const struct cli *cli, const char *text, json_t *ret)
{
    char span[SPAN_TEXT_MAX];
    struct berth_err err;
    const char *at = text ? strchr(text, '@') : NULL;

    if (!text)
        return EXIT_OK;
    json_t *checkpoint = json_object();
    (void)json_object_set_new(ret, "checkpoint", checkpoint);
    (void)json_object_set_new(checkpoint, "signal", json_stringn(text, at ? (size_t)(at - text) : strlen(text)));
    if (at && duration_text_read(at + 1, 1, span, &err) != 0)
        return cli_fail(cli, EXIT_USAGE, "--checkpoint: %s", err.text);
    if (at)
        (void)json_object_set_new(checkpoint, "grace", json_string(span));
    return EXIT_OK;
}

static bool is_notify_event(const char *text)
{
    static const char *const words[] = {"started", "ended", "failed", "preempted"};

    size_t len = strcspn(text, ",");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && strncmp(text, words[i], len) == 0)
            return true;
    return false;
}

/* Parses "TO@started,ended". The text after the last '@' is the list of events if it consists of event names; mail
 * addresses contain an '@', too. */
static void notify_make(const struct submission_values *v, json_t *ret)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v->notify.len; i++) {
        const char *at = strrchr(v->notify.at[i], '@');
        bool when = at && is_notify_event(at + 1);
        json_t *one = json_object(), *on = json_array();
        (void)json_object_set_new(
            one, "to", json_stringn(v->notify.at[i], when ? (size_t)(at - v->notify.at[i]) : strlen(v->notify.at[i])));
        while (when && *at++) {
            (void)json_array_append_new(on, json_stringn(at, strcspn(at, ",")));
            at += strcspn(at, ",");
        }
        if (json_array_size(on))
            (void)json_object_set(one, "on", on);
        json_decref(on);
        (void)json_array_append_new(list, one);
    }
    if (json_array_size(list))
        (void)json_object_set(ret, "notify", list);
    json_decref(list);
}

static void data_make(const struct submission_values *v, json_t *ret)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v->data.len; i++)
        (void)json_array_append_new(list, json_string(v->data.at[i]));
    if (json_array_size(list))
        (void)json_object_set(ret, "data", list);
    json_decref(list);
}

static int attributes_make(const struct cli *cli, const struct submission_values *v, json_t *ret)
{
    CLEANUP(json) json_t *attributes = json_object();

    for (size_t i = 0; i < v->attributes.len; i++) {
        const char *word = v->attributes.at[i], *equals = strchr(word, '=');
        CLEANUP(mem) char *key = mem_strdup(word);
        if (!equals || equals == word)
            return cli_fail(cli, EXIT_USAGE, "--attr takes KEY=TEXT, not '%s'", word);
        key[equals - word] = '\0';
        (void)json_object_set_new(attributes, key, json_string(equals + 1));
    }
    if (json_object_size(attributes))
        (void)json_object_set(ret, "attributes", attributes);
    return EXIT_OK;
}

int submission_make(const struct cli *cli, const struct submission_values *v, json_t *ret)
{
    char span[SPAN_TEXT_MAX];
    struct berth_err err;
    int rc = workload_make(cli, &v->workload, NULL, 0, ret);

    if (rc == EXIT_OK)
        rc = texts_make(cli, v, ret);
    if (rc == EXIT_OK)
        rc = numbers_make(cli, v, ret);
    if (rc == EXIT_OK)
        rc = after_make(cli, v, ret);
    if (rc == EXIT_OK)
        rc = gpus_make(cli, v->gpus, ret);
    if (rc == EXIT_OK)
        rc = checkpoint_make(cli, v->checkpoint, ret);
    if (rc == EXIT_OK)
        rc = attributes_make(cli, v, ret);
    if (rc == EXIT_OK && v->log_keep && duration_text_read(v->log_keep, 1, span, &err) != 0)
        rc = cli_fail(cli, EXIT_USAGE, "--log-keep: %s", err.text);
    if (rc != EXIT_OK)
        return rc;
    if (v->log_keep)
        (void)json_object_set_new(ret, "log", json_pack("{s:s}", "keep", span));
    notify_make(v, ret);
    data_make(v, ret);
    return v->exports ? script_export(cli, v->exports, (const char *const *)environ, ret) : EXIT_OK;
}

/* ---- documents -------------------------------------------------------------------------------------------------- */

void submission_merge(json_t *to, const json_t *over)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)over, key, value)
    {
        json_t *there = json_object_get(to, key);
        bool map = strcmp(key, "env") == 0 || strcmp(key, "resources") == 0 || strcmp(key, "attributes") == 0;
        if (map && json_is_object(there) && json_is_object(value))
            (void)json_object_update(there, value);
        else
            (void)json_object_set_new(to, key, json_deep_copy(value));
    }
}

static int file_read(const struct cli *cli, const char *path, json_t *list)
{
    struct documents documents;
    struct berth_err err;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;

    if (documents_read(path, &documents, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    int rc = documents.len ? EXIT_OK : cli_fail(cli, EXIT_FAILED, "%s: contains no documents", name);
    for (size_t i = 0; rc == EXIT_OK && i < documents.len; i++) {
        json_t *one = documents.at[i].root;
        const char *kind = json_string_value(json_object_get(one, "kind"));
        if (!json_is_object(one))
            rc = cli_fail(cli, EXIT_FAILED, "%s:%zu: expected a job: an object with a command", name,
                          documents.at[i].line);
        else if (kind && strcmp(kind, "job") != 0)
            rc = cli_fail(cli, EXIT_FAILED, "%s:%zu: expected kind job, found %s; 'berth apply -f' accepts every kind",
                          name, documents.at[i].line, kind);
        if (rc != EXIT_OK)
            break;
        (void)json_object_del(one, "kind");
        (void)json_object_del(one, "id"); /* the id of an existing job: this document makes a new job */
        doc_strip(one);
        (void)json_array_append_new(list, json_deep_copy(one));
    }
    documents_done(&documents);
    return rc;
}

static int command_read(const struct cli *cli, const struct operands *operands, json_t *list)
{
    json_t *document = json_object(), *words = json_array();
    int rc = EXIT_OK;

    (void)json_array_append_new(list, document);
    for (size_t i = 0; i < operands->len && rc == EXIT_OK; i++)
        if (json_array_append_new(words, json_string(operands->at[i])) != 0)
            rc = cli_fail(cli, EXIT_USAGE, "argument %zu of the command is not UTF-8", i + 1);
    if (operands->len)
        (void)json_object_set(document, "command", words);
    json_decref(words);
    return rc;
}

int submission_read(const struct cli *cli, const struct submission_values *v, const struct operands *operands,
                    json_t **ret)
{
    CLEANUP(json) json_t *list = json_array();
    CLEANUP(json) json_t *over = json_object();
    bool script = operands->before > 0 && script_is(operands->at[0]);
    json_t *one;
    size_t i;
    int rc;

    if (v->file && operands->len)
        return cli_fail(cli, EXIT_USAGE, "-f cannot be combined with the command '%s'", operands->at[0]);
    if (!v->file && !operands->len && !v->workload.image)
        return cli_fail(cli, EXIT_USAGE,
                        "nothing to run: expected a script, or a command after '--'; see 'berth %s --help'", "submit");
    if (v->file)
        rc = file_read(cli, v->file, list);
    else if (script)
        rc = script_document(cli, operands->at[0], operands->at + 1, operands->len - 1, list);
    else
        rc = command_read(cli, operands, list);
    if (rc == EXIT_OK)
        rc = submission_make(cli, v, over);
    if (rc != EXIT_OK)
        return rc;
    json_array_foreach(list, i, one) submission_merge(one, over);
    *ret = take_ptr(&list);
    return EXIT_OK;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Prints the id of one job, or all ids of a set of roles, and appends them to `ids`. */
static void answer_print(struct api *a, const json_t *document, const json_t *answer, const struct submission_act *act,
                         json_t *ids)
{
    const json_t *all = json_object_get(answer, "ids"), *roles = json_object_get(document, "roles");
    size_t len = json_is_array(all) ? json_array_size(all) : 1;

    for (size_t i = 0; i < len; i++) {
        json_t *id = json_is_array(all) ? json_array_get(all, i) : json_object_get(answer, "id");
        const char *role = json_string_value(json_object_get(json_array_get(roles, i), "name"));
        (void)json_array_append(ids, id);
        if (act->quiet || act->json)
            continue;
        fprintf(a->cli->out, "job/%" JSON_INTEGER_FORMAT " submitted%s%s%s\n", json_integer_value(id),
                role ? " as " : "", role ? role : "", act->dry_run ? " (dry run)" : "");
    }
}

static void json_print(const struct cli *cli, const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2));

    fprintf(cli->out, "%s\n", text ? text : "null");
    free(text);
}

/* Prints the stored documents of the answer's jobs. */
static int stored_print(struct api *a, const json_t *answer)
{
    const json_t *ids = json_object_get(answer, "ids");
    size_t len = json_is_array(ids) ? json_array_size(ids) : 1;
    int rc = EXIT_OK;

    for (size_t i = 0; i < len && rc == EXIT_OK; i++) {
        CLEANUP(json) json_t *stored = NULL;
        const json_t *id = json_is_array(ids) ? json_array_get(ids, i) : json_object_get(answer, "id");
        char number[24];
        struct object_target target = {collection_find("job"), number};
        (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
        rc = object_get(a, &target, &stored);
        if (rc == EXIT_OK)
            json_print(a->cli, stored);
    }
    return rc;
}

/* Prints the document that would be stored. */
static void draft_document_print(const struct cli *cli, const json_t *answer)
{
    const json_t *change;
    size_t i;

    json_array_foreach(json_object_get(answer, "changes"), i, change)
    {
        const char *kind = json_string_value(json_object_get(change, "kind"));
        struct str text = {0};
        if (!kind || strcmp(kind, "job") != 0 || !json_is_object(json_object_get(change, "after")))
            continue;
        yaml_write(&text, json_object_get(change, "after"));
        fprintf(cli->out, "%s", str_text(&text));
        str_done(&text);
    }
    draft_print(cli, value_at(answer, "answer.forecast"), wall_clock_ns());
}

int submission_send(struct api *a, const json_t *documents, const struct submission_act *act, json_t **ret_ids)
{
    CLEANUP(json) json_t *ids = json_array();
    struct object_target target = {collection_find("job"), NULL};
    const json_t *one;
    size_t i;

    json_array_foreach(documents, i, one)
    {
        CLEANUP(json) json_t *answer = NULL;
        struct object_act post = {
            .method = "POST", .body = one, .dry_run = act->dry_run, .query = act->dry_run ? "forecast=1" : NULL};
        int rc = object_do(a, &target, &post, &answer);
        if (rc != EXIT_OK && i > 0)
            cli_hint(a->cli, "The %zu jobs before it were submitted.", i);
        if (rc != EXIT_OK)
            return rc;
        if (act->json && act->dry_run)
            json_print(a->cli, answer);
        else if (act->json)
            rc = stored_print(a, answer);
        if (rc != EXIT_OK)
            return rc;
        answer_print(a, one, act->dry_run ? json_object_get(answer, "answer") : answer, act, ids);
        if (act->dry_run && !act->json)
            draft_document_print(a->cli, answer);
    }
    if (ret_ids)
        *ret_ids = take_ptr(&ids);
    return EXIT_OK;
}

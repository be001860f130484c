#include "wire/doc/optask_doc.h"

#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/doc/queue_doc.h"

/* ---- the OpTask ------------------------------------------------------------------------------------------------- */

static int script_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return expected(r, "the text of a script", value);
    size_t len = json_string_length(value);
    if (len > OPTASK_SCRIPT_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", len, OPTASK_SCRIPT_MAX);
    if (strlen(json_string_value(value)) != len)
        return err_set(r->err, EINVAL, "has a zero byte, which is not allowed in a script");
    *(const char **)key_field(key, object) = text_keep(r, json_string_value(value));
    return 0;
}

/* Reads a list of arguments with a limited number and length. */
static int args_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    size_t len = json_array_size(value);
    if (!json_is_array(value))
        return expected(r, "a list of texts", value);
    if (len > OPTASK_ARGS_MAX)
        return err_set(r->err, EINVAL, "has %zu entries; at most %d are allowed", len, OPTASK_ARGS_MAX);
    const char **args = ARENA_ARRAY(r->arena, const char *, len + 1);
    for (size_t i = 0; i < len; i++) {
        int rc = text_of(r, json_array_get(value, i), &args[i]);
        if (rc == 0 && strlen(args[i]) > OPTASK_ARG_BYTES_MAX)
            rc = err_set(r->err, EINVAL, "has more than %d bytes", OPTASK_ARG_BYTES_MAX);
        if (rc < 0)
            return in_item(r, i, rc);
    }
    list_set(key, object, args, len);
    return 0;
}

static int hash_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return expected(r, "64 hexadecimal digits in lower case", value);
    *(const char **)key_field(key, object) = text_keep(r, text);
    return 0;
}

#define AT(field) offsetof(struct optask_doc, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key optask_rows[] = {
    KEY("nodes", "list of names", "the target nodes; or `require`", queue_names_read, LIST(nodes)),
    KEY("require", "conditions", "condition on the labels of nodes, evaluated at creation", require_read,
        LIST(require)),
    KEY("init", "true or false",
        "run on nodes that join from now on, before they accept work: all, or those that match `require`", bool_read,
        .at = AT(init)),
    KEY("parallel", "whole number", "maximum concurrent nodes; default: 1", u32_read, .at = AT(parallel)),
    KEY("max_failures", "whole number", "maximum failed nodes; with more, no further node is started. Default: 0",
        u32_read, .at = AT(max_failures)),
    KEY("drain", "true or false", "drain each node first, and accept work again afterwards", bool_read,
        .at = AT(drain)),
    KEY("language", "`shell` or `python`", "default: `shell`", word_read, .at = AT(language),
        .arg = optask_language_words),
    KEY("script", "text", "the script, run as root; required; cannot be changed", script_read, .at = AT(script)),
    KEY("sha256", "64 hexadecimal digits", "SHA-256 of the script; set by the daemon, or given for comparison",
        hash_read, .at = AT(sha256)),
    KEY("undo", "text, or `self`",
        "undo script, run after a failure or on request; `self`: the script itself with `BERTH_UNDO=1`", script_read,
        .at = AT(undo)),
    KEY("undo_sha256", "64 hexadecimal digits", "SHA-256 of `undo`", hash_read, .at = AT(undo_sha256)),
    KEY("args", "list of texts", "arguments of both scripts", args_read, LIST(args)),
    KEY("timeout", "duration", "timeout of each run; default: an hour; at most a week", duration_read,
        .at = AT(timeout_ns)),
    KEY("ready", "text", "name of the predefined OpTask of this script", line_read, .at = AT(ready)),
    KEY("content", "64 hexadecimal digits", "SHA-256 of the content, which is fixed per id; set by the daemon",
        hash_read, .at = AT(content)),
};
#undef LIST
#undef AT
static KEY_TABLE(optask_keys, "optask", optask_rows);

const struct key_table *const optask_tables[] = {&optask_keys, &identity_keys, &meta_keys, &created_keys, NULL};

static int where_check(const struct optask_doc *d, struct berth_err *err)
{
    if (d->init && d->nodes_len)
        return err_set(err, EINVAL, "nodes: not allowed with init, which applies to nodes that join later");
    if (d->nodes_len && d->require_len)
        return err_set(err, EINVAL, "require: give either require or nodes");
    if (!d->init && !d->nodes_len && !d->require_len)
        return err_set(err, EINVAL, "nodes: missing; give nodes, require or init: true");
    if (d->init && d->drain)
        return err_set(err, EINVAL, "drain: not allowed with init");
    return 0;
}

int optask_doc_read(const json_t *doc, struct arena *arena, struct optask_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct optask_doc d = {.parallel = 1, .timeout_ns = OPTASK_TIMEOUT_NS_DEFAULT};
    err = err ? err : &own;
    int rc = document_fill(doc, arena, &optask_keys, &d, &d.meta, err);
    if (rc < 0)
        return rc;
    if (!d.script)
        return err_set(err, EINVAL, "script: missing");
    if (strcmp(d.script, OPTASK_UNDO_SELF) == 0)
        rc = err_set(err, EINVAL, "script: expected the text of a script");
    if (rc == 0)
        rc = where_check(&d, err);
    if (rc == 0 && (d.parallel < 1 || d.parallel > OPTASK_PARALLEL_MAX))
        rc = err_set(err, EINVAL, "parallel: expected 1 to %d", OPTASK_PARALLEL_MAX);
    if (rc == 0 && (d.timeout_ns < 1000000000 || d.timeout_ns > OPTASK_TIMEOUT_NS_MAX))
        rc = err_set(err, EINVAL, "timeout: expected a second to a week");
    if (rc == 0 && d.undo_sha256 && !d.undo)
        rc = err_set(err, EINVAL, "undo_sha256: needs undo");
    if (rc == 0)
        *ret = d;
    return rc;
}

/* ---- on one node ------------------------------------------------------------------------------------------------ */

static int exit_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    enum { EXIT_CODE_MAX = 255 };
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > EXIT_CODE_MAX)
        return expected(r, "an exit code from 0 to 255", value);
    *(int32_t *)key_field(key, object) = (int32_t)json_integer_value(value);
    *(bool *)((char *)object + key->len_at) = true;
    return 0;
}

#define AT(field) offsetof(struct opstep_doc, field)
static const struct key opstep_rows[] = {
    KEY("v", "whole number", "version of the stored form", i64_read, .at = AT(version)),
    KEY("optask", "text", "the OpTask", line_read, .at = AT(optask)),
    KEY("node", "text", "where", line_read, .at = AT(node)),
    KEY("attempt", "whole number", "the attempt", counter_read, .at = AT(attempt)),
    KEY("undo", "true or false", "the undo script is requested", bool_read, .at = AT(undo)),
    KEY("state", "text", "the state", word_read, .at = AT(state), .arg = opstep_state_words),
    KEY("fault", "text", "the cause of the failure", word_read, .at = AT(fault), .arg = opstep_fault_words),
    KEY("since", "time", "time of the state", time_read, .at = AT(since_ns)),
    KEY("error", "text", "the error text", message_read, .at = AT(error)),
    KEY("exit", "whole number", "of the script", exit_read, .at = AT(exit), .len_at = AT(exit_reported)),
    KEY("init", "true or false", "the node accepts no work before the OpTask is done", bool_read, .at = AT(init)),
    KEY("drained", "true or false", "the node was drained for the OpTask", bool_read, .at = AT(drained)),
    KEY("before", "text", "state of the node before the drain, if not ready", line_read, .at = AT(before)),
    KEY("excused", "whole number", "failures on other nodes that do not block this attempt", u32_read,
        .at = AT(excused)),
};
#undef AT
static KEY_TABLE(opstep_keys, "opstep", opstep_rows);

static int fill(const json_t *doc, struct arena *arena, const struct key_table *table, void *object,
                struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    return table_read(&r, doc, table, object);
}

int opstep_doc_read(const json_t *doc, struct arena *arena, struct opstep_doc *ret, struct berth_err *err)
{
    struct opstep_doc d = {0};
    int rc = fill(doc, arena, &opstep_keys, &d, err);
    if (rc == 0 && (!d.optask || !d.node))
        rc = err_set(err, EINVAL, "%s: missing", d.optask ? "node" : "optask");
    if (rc == 0)
        *ret = d;
    return rc;
}

#define AT(field) offsetof(struct opstep_report, field)
static const struct key report_rows[] = {
    KEY("attempt", "whole number", "the attempt; required", counter_read, .at = AT(attempt)),
    KEY("state", "`running`, `undoing`, `done`, `failed` or `undone`", "required", word_read, .at = AT(state),
        .arg = opstep_state_words),
    KEY("fault", "`timeout`, `script`, `lost`, `refused`, `no-space`, `network` or `package-manager`",
        "cause of the failure of the script, also if it was undone", word_read, .at = AT(fault),
        .arg = opstep_fault_words),
    KEY("error", "text", "error text", message_read, .at = AT(error)),
    KEY("exit", "0 to 255", "of the script", exit_read, .at = AT(exit), .len_at = AT(exit_reported)),
};
#undef AT
KEY_TABLE(opstep_report_keys, "optask reported", report_rows);

int opstep_report_read(const json_t *doc, struct arena *arena, struct opstep_report *ret, struct berth_err *err)
{
    struct opstep_report d = {0};
    int rc = fill(doc, arena, &opstep_report_keys, &d, err);
    if (rc == 0 && d.attempt == 0)
        rc = err_set(err, EINVAL, "attempt: missing");
    if (rc == 0 && (d.state == OPSTEP_PENDING || d.state == OPSTEP_DRAINING))
        rc = err_set(err, EINVAL, "state: expected running, undoing, done, failed or undone");
    if (rc == 0)
        *ret = d;
    return rc;
}

static const struct key act_rows[] = {
    KEY("nodes", "list of names", "only on these nodes; default: all possible nodes", queue_names_read,
        .at = offsetof(struct optask_act, nodes), .len_at = offsetof(struct optask_act, nodes_len)),
};
KEY_TABLE(optask_act_keys, "optask act", act_rows);

int optask_act_read(const json_t *doc, struct arena *arena, struct optask_act *ret, struct berth_err *err)
{
    struct optask_act d = {0};
    int rc = fill(doc, arena, &optask_act_keys, &d, err);
    if (rc == 0)
        *ret = d;
    return rc;
}

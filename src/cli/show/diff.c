/* diff.c - `berth diff -f FILE`: prints what `berth apply` would change, as computed by the server. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/unified.h"
#include "cli/show/dry_run.h"
#include "cli/show/manifest.h"
#include "cli/show/object.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/yaml_write.h"

/* Exit codes of diff(1): 1 is a difference, so all errors are 2. */
enum { DIFF_SAME = EXIT_OK, DIFF_DIFFERS = EXIT_FAILED, DIFF_TROUBLE = EXIT_USAGE };

struct diff_values {
    struct option_list files;
};

static const struct option options[] = {
    OPTION_LIST_ROW("filename", 'f', diff_values, files, "FILE",
                    "Manifest or folder of manifests; '-' is standard input; may be given several times."),
};

/* Writes a document as YAML without the fields that the daemon adds; "" for no document. */
static void document_text(const json_t *doc, struct str *to)
{
    if (!json_is_object(doc))
        return;
    CLEANUP(json) json_t *plain = json_copy((json_t *)doc);
    doc_strip(plain);
    yaml_write(to, plain);
}

static void diff_print(const struct cli *cli, const struct str *text)
{
    const char *at = str_text(text);

    while (*at) {
        size_t len = strcspn(at, "\n");
        enum color color = at[0] == '+'   ? COLOR_GREEN
                           : at[0] == '-' ? COLOR_RED
                           : at[0] == '@' ? COLOR_BLUE
                                          : COLOR_NONE;
        fprintf(cli->out, "%s%.*s%s\n", color == COLOR_NONE ? "" : cli_paint(cli, color), (int)len, at,
                color == COLOR_NONE ? "" : cli_paint(cli, COLOR_NONE));
        at += len + (at[len] == '\n');
    }
}

static void side_name(struct str *to, const struct str *side, const char *kind, const char *id, const char *where)
{
    if (side->len)
        str_addf(to, "%s/%s %s", kind ? kind : "", id, where);
    else
        str_add(to, "/dev/null");
}

static bool item_diff(const struct cli *cli, const char *kind, const struct review_item *item)
{
    CLEANUP(str) struct str before = {0}, after = {0}, text = {0}, old_name = {0}, new_name = {0};

    document_text(item->before, &before);
    document_text(item->after, &after);
    side_name(&old_name, &before, kind, item->id, "on the server");
    side_name(&new_name, &after, kind, item->id, "as applied");
    bool differs = unified_diff(&text, str_text(&old_name), str_text(&new_name), str_text(&before), str_text(&after));
    diff_print(cli, &text);
    return differs;
}

static int compare(struct api *a, const struct manifests *m)
{
    CLEANUP(review) struct review review = {0};
    struct api_error trouble;
    bool differs = false;

    int rc = review_make(a, m->at, m->len, &review, &trouble);
    if (rc != EXIT_OK) {
        rc = api_error_print(a, &trouble);
        return rc == EXIT_FAILED ? DIFF_TROUBLE : rc;
    }
    for (size_t i = 0; i < m->len; i++)
        differs |= item_diff(a->cli, m->at[i].collection->kind, &review.items[i]);
    return differs ? DIFF_DIFFERS : DIFF_SAME;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct diff_values *v = values;
    CLEANUP(manifests) struct manifests manifests = {0};
    CLEANUP(api) struct api api = {0};
    struct berth_err err;

    (void)operands;
    if (v->files.len == 0)
        return cli_fail(cli, EXIT_USAGE, "nothing to compare: expected -f FILE, -f FOLDER, or -f - for standard input");
    for (size_t i = 0; i < v->files.len; i++)
        if (manifests_read(v->files.at[i], &manifests, &err) != 0)
            return cli_fail(cli, (enum exit_code)DIFF_TROUBLE, "%s", err.text);
    manifests_sort(&manifests);
    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc == EXIT_FAILED ? DIFF_TROUBLE : rc;
    return manifests.len ? compare(&api, &manifests) : DIFF_SAME;
}

const struct command diff_command = {
    .name = "diff",
    .operands = "-f FILE",
    .summary = "Show what 'berth apply' would change, without changing anything.",
    .text = "Compares the objects on the server with the manifests after a dry run on the server, "
            "and prints the differences as YAML in the format of 'diff -u'. Exit code: 0 without "
            "differences, 1 with differences, 2 or more on failure.",
    .examples = "  berth diff -f photos.yaml && echo nothing to do",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct diff_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .run = run,
};

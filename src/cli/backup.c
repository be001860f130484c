/* backup.c - `berth backup FILE` and `berth restore FILE --data DIR`. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/command.h"
#include "cli/save.h"
#include "cli/show.h"
#include "store/store.h"

struct data_values {
    const char *data;
};

/* ---- backup --------------------------------------------------------------------------------------------------------- */

static const struct option backup_options[] = {
    OPTION_TEXT_ROW("data", 0, data_values, data, "DIR",
                    "Read the folder of a daemon on this machine instead of asking a server."),
};

struct reception {
    struct save save;
    struct berth_err err;
    uint64_t bytes;
    bool failed;
};

static bool piece_take(void *ctx, const char *at, size_t len)
{
    struct reception *r = ctx;

    r->failed = save_write(&r->save, at, len, &r->err) != 0;
    r->bytes += len;
    return !r->failed;
}

static int backup_server(struct cli *cli, const char *path)
{
    struct reception r = {0};
    CLEANUP(api) struct api api = {0};
    struct api_trouble trouble;

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (save_begin(&r.save, path, &r.err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    rc = api_stream(&api, "/v1/backup", piece_take, &r, &trouble);
    if (r.failed)
        rc = cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    else if (rc != EXIT_OK)
        rc = api_tell(&api, &trouble);
    else if (r.bytes == 0)
        rc = cli_fail(cli, EXIT_FAILED, "the server sent nothing");
    else if (save_end(&r.save, &r.err) != 0)
        rc = cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    save_drop(&r.save);
    if (rc == EXIT_OK)
        fprintf(cli->out, "Wrote %s (%s).\n", path, show_bytes(r.bytes).text);
    return rc;
}

static int backup_data(struct cli *cli, const char *data, const char *path)
{
    struct store_options options = {.readonly = true};
    struct store *store = NULL;
    struct berth_err err;
    struct stat st;

    if (access(path, F_OK) == 0)
        return cli_fail(cli, EXIT_FAILED, "%s exists already; name another file, or remove it", path);
    if (store_sqlite_open(data, &options, &store, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    mode_t before = umask(077); /* it has everybody's secrets */
    int rc = store_backup(store, path, &err);
    umask(before);
    store_close(store);
    if (rc != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    fprintf(cli->out, "Wrote %s (%s).\n", path, show_bytes(stat(path, &st) == 0 ? (uint64_t)st.st_size : 0).text);
    return EXIT_OK;
}

static int backup_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct data_values *v = values;

    return v->data ? backup_data(cli, v->data, operands->at[0]) : backup_server(cli, operands->at[0]);
}

const struct command backup_command = {
    .name = "backup",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Write everything a server knows into one file.",
    .text =
        "The server goes on meanwhile. The file must not exist; it appears whole or not at all, and only you may read "
        "it: it holds the hashes of all tokens and the install configuration of all apps.",
    .examples = "  berth backup monday.db\n"
                "  berth backup monday.db --data /var/lib/berth",
    .options = backup_options,
    .options_len = 1,
    .values_size = sizeof(struct data_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = backup_run,
};

/* ---- restore -------------------------------------------------------------------------------------------------------- */

static const struct option restore_options[] = {
    OPTION_TEXT_ROW("data", 0, data_values, data, "DIR", "The new daemon's folder, which has no store yet."),
};

static int restore_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct data_values *v = values;
    struct berth_err err;

    if (!v->data)
        return cli_fail(cli, EXIT_USAGE, "restore where? Say --data DIR, the folder of the new daemon");
    if (mkdir(v->data, 0700) != 0 && errno != EEXIST)
        return cli_fail(cli, EXIT_FAILED, "cannot make the folder %s: %s", v->data, strerror(errno));
    if (store_sqlite_restore(operands->at[0], v->data, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    fprintf(cli->out, "Restored into %s; start it by 'berthd --data %s'.\n", v->data, v->data);
    return EXIT_OK;
}

const struct command restore_command = {
    .name = "restore",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Make the folder of a new daemon from a backup.",
    .text =
        "The backup is checked as a whole first, and a store that is there already is never replaced. Every token that "
        "was good at the time of the backup is good again.",
    .examples = "  berth restore monday.db --data /var/lib/berth",
    .options = restore_options,
    .options_len = 1,
    .values_size = sizeof(struct data_values),
    .section = SECTION_CLUSTER,
    .run = restore_run,
};

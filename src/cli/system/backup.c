/* backup.c - `berth backup FILE` and `berth restore FILE --data DIR`. */
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/save.h"
#include "cli/system/backup_key.h"
#include "store/store.h"

struct backup_values {
    const char *data;
    struct backup_key_source source;
    bool store_only, no_journal;
};

#define SEAL_ROWS                                                                                                      \
    OPTION_TEXT_ROW("passphrase-file", 0, backup_values, source.passphrase_file, "FILE",                               \
                    "File with the passphrase of the backup; '-' is standard input."),                                 \
        OPTION_TEXT_ROW("key-file", 0, backup_values, source.key_file, "FILE",                                         \
                        "File with the key of the backup, instead of a passphrase: 64 hexadecimal digits.")

/* ---- backup ----------------------------------------------------------------------------------------------------- */

static const struct option backup_options[] = {
    OPTION_TEXT_ROW("data", 0, backup_values, data, "DIR",
                    "Back up the data folder of a daemon on this machine instead of a server."),
    SEAL_ROWS,
    OPTION_FLAG_ROW("store-only", 0, backup_values, store_only,
                    "Back up only the store, unencrypted and without keys; agents have to join again after a "
                    "restore."),
    OPTION_FLAG_ROW("no-journal", 0, backup_values, no_journal, "Exclude the journal's segments."),
};

struct backup_download {
    struct saved_file save;
    struct berth_err err;
    uint64_t bytes;
    bool failed;
};

static bool piece_take(void *ctx, const char *at, size_t len)
{
    struct backup_download *r = ctx;

    r->failed = save_write(&r->save, at, len, &r->err) != 0;
    r->bytes += len;
    return !r->failed;
}

/* Writes the body of POST /v1/backup. The server gets the key, never the passphrase. */
static void seal_text(const struct backup_values *v, const struct backup_key *key, struct str *to)
{
    char hex[2 * BACKUP_KEY_LEN + 1];

    str_addf(to, "{\"key\":\"%s\"", sodium_bin2hex(hex, sizeof hex, key->bytes, sizeof key->bytes));
    if (key->derived)
        str_addf(to, ",\"salt\":\"%s\",\"passes\":%u,\"memory_mib\":%u",
                 sodium_bin2hex(hex, sizeof hex, key->salt, sizeof key->salt), key->passes, key->memory_mib);
    str_addf(to, ",\"journal\":%s}", v->no_journal ? "false" : "true");
    sodium_memzero(hex, sizeof hex);
}

static int backup_server(struct cli *cli, const struct backup_values *v, const struct backup_key *key, const char *path)
{
    struct backup_download r = {0};
    CLEANUP(api) struct api api = {0};
    CLEANUP(str) struct str seal = {0};
    struct api_error trouble;

    int rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (save_begin(&r.save, path, &r.err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    if (v->store_only) {
        rc = api_stream(&api, "/v1/backup", piece_take, &r, &trouble);
    } else {
        seal_text(v, key, &seal);
        rc = api_stream_post(&api, "/v1/backup", seal.at, piece_take, &r, &trouble);
        sodium_memzero(seal.at, seal.len);
    }
    if (r.failed)
        rc = cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    else if (rc != EXIT_OK)
        rc = api_error_print(&api, &trouble);
    else if (r.bytes == 0)
        rc = cli_fail(cli, EXIT_FAILED, "the server sent nothing");
    else if (save_end(&r.save, &r.err) != 0)
        rc = cli_fail(cli, EXIT_FAILED, "%s", r.err.text);
    save_drop(&r.save);
    if (rc == EXIT_OK)
        fprintf(cli->out, "Wrote %s (%s).\n", path, show_bytes(r.bytes).text);
    return rc;
}

static int backup_data(struct cli *cli, const struct backup_values *v, const struct backup_key *key, const char *path)
{
    const struct backup_options sealed = {.key = key, .journal = !v->no_journal};
    struct store_options options = {.readonly = true};
    struct store *store = NULL;
    struct berth_err err;
    struct stat st;

    if (store_sqlite_open(v->data, &options, &store, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    mode_t before = umask(077); /* the backup contains the secrets of all users */
    int rc = v->store_only ? store_backup(store, path, &err) : backup_write(store, v->data, &sealed, path, &err);
    umask(before);
    store_close(store);
    if (rc != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    fprintf(cli->out, "Wrote %s (%s).\n", path, show_bytes(stat(path, &st) == 0 ? (uint64_t)st.st_size : 0).text);
    return EXIT_OK;
}

static int backup_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct backup_values *v = values;
    const char *path = operands->at[0];
    struct backup_key key = {0};

    if (v->store_only && (v->source.key_file || v->source.passphrase_file || v->no_journal))
        return cli_fail(cli, EXIT_USAGE, "--store-only is a plain copy: it takes no passphrase, key or --no-journal");
    if (access(path, F_OK) == 0)
        return cli_fail(cli, EXIT_FAILED, "%s already exists; choose another file or remove it", path);
    int rc = v->store_only ? EXIT_OK : backup_key_choose(cli, &v->source, &key);
    if (rc == EXIT_OK)
        rc = v->data ? backup_data(cli, v, &key, path) : backup_server(cli, v, &key, path);
    sodium_memzero(&key, sizeof key);
    return rc;
}

const struct command backup_command = {
    .name = "backup",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Back up a daemon into one encrypted file.",
    .text = "The backup contains the store, the journal's segments, and the keys and certificates of "
            "the daemon's folder. It is encrypted with a passphrase, which is prompted for, or with "
            "a key; without it the backup cannot be restored. The daemon keeps running. FILE must "
            "not exist; it is created atomically and is readable only by you.",
    .examples = "  berth backup monday.backup\n"
                "  berth backup monday.backup --passphrase-file /root/passphrase\n"
                "  berth backup monday.backup --data /var/lib/berth --key-file /root/backup.key",
    .options = backup_options,
    .options_len = sizeof backup_options / sizeof *backup_options,
    .values_size = sizeof(struct backup_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = backup_run,
};

/* ---- restore ---------------------------------------------------------------------------------------------------- */

static const struct option restore_options[] = {
    OPTION_TEXT_ROW("data", 0, backup_values, data, "DIR",
                    "Data folder of the new daemon; must be empty or not exist."),
    SEAL_ROWS,
};

/* Restores only the store (--store-only); keys in the folder are kept. */
static int restore_store(struct cli *cli, const char *data, const char *path)
{
    struct berth_err err;

    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return cli_fail(cli, EXIT_FAILED, "cannot create the folder %s: %s", data, strerror(errno));
    if (store_sqlite_restore(path, data, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    fprintf(cli->err,
            "The backup contains no keys: unless you copy them into %s, agents have to join again "
            "and secrets have to be set again.\n",
            data);
    return EXIT_OK;
}

static int restore_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct backup_values *v = values;
    const char *path = operands->at[0];
    enum backup_kind kind = BACKUP_STORE;
    struct backup_key key = {0};
    struct berth_err err;

    if (!v->data)
        return cli_fail(cli, EXIT_USAGE, "--data DIR is required: the folder of the new daemon");
    if (backup_inspect(path, &kind, &key, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    int rc = kind == BACKUP_STORE ? restore_store(cli, v->data, path) : backup_key_find(cli, &v->source, kind, &key);
    if (rc == EXIT_OK && kind != BACKUP_STORE && backup_restore(path, &key, v->data, &err) != 0)
        rc = cli_fail(cli, EXIT_FAILED, "%s", err.text);
    sodium_memzero(&key, sizeof key);
    if (rc == EXIT_OK)
        fprintf(cli->out, "Restored into %s; start the daemon with 'berthd --data %s'.\n", v->data, v->data);
    return rc;
}

const struct command restore_command = {
    .name = "restore",
    .operands = "FILE",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Create the data folder of a daemon from a backup.",
    .text = "Verifies the whole backup first and never replaces existing files. Agents, tokens, "
            "secrets and pinned certificates that were valid at the time of the backup are valid "
            "again.",
    .examples = "  berth restore monday.backup --data /var/lib/berth",
    .options = restore_options,
    .options_len = sizeof restore_options / sizeof *restore_options,
    .values_size = sizeof(struct backup_values),
    .section = SECTION_CLUSTER,
    .run = restore_run,
};

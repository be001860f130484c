#include "cli/system/backup_key.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

struct passphrase {
    char text[BACKUP_PASSPHRASE_MAX + 2]; /* one character over the limit, and a line end */
    size_t len;
};

static void passphrase_cleanup(struct passphrase *p)
{
    sodium_memzero(p, sizeof *p);
}

static void fd_cleanup(int *fd)
{
    if (*fd > STDIN_FILENO)
        (void)close(*fd);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* Rejects a secret file that other users may read. */
static int secret_open(const struct cli *cli, const char *path, int *ret_fd)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        *ret_fd = STDIN_FILENO;
        return EXIT_OK;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = EXIT_OK;
    if (fd < 0 || fstat(fd, &st) < 0)
        rc = cli_fail(cli, EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    else if (S_ISREG(st.st_mode) && (st.st_mode & 077))
        rc = cli_fail(cli, EXIT_FAILED, "other users can read %s; run 'chmod 600 %s'", path, path);
    if (rc == EXIT_OK)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return rc;
}

/* Reads to the end, at most `max` bytes; -1: read error. */
static ssize_t all_read(int fd, char *to, size_t max)
{
    size_t len = 0;

    for (ssize_t n; len < max && (n = read(fd, to + len, max - len)) != 0;) {
        if (n < 0 && errno != EINTR)
            return -1;
        len += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)len;
}

static void line_end_cut(struct passphrase *p)
{
    if (p->len && p->text[p->len - 1] == '\n')
        p->len--;
    if (p->len && p->text[p->len - 1] == '\r')
        p->len--;
}

static int passphrase_read(const struct cli *cli, const char *path, struct passphrase *ret)
{
    CLEANUP(fd) int fd = -1;
    int rc = secret_open(cli, path, &fd);

    if (rc != EXIT_OK)
        return rc;
    ssize_t n = all_read(fd, ret->text, sizeof ret->text);
    if (n < 0)
        return cli_fail(cli, EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    ret->len = (size_t)n;
    line_end_cut(ret);
    return EXIT_OK;
}

static int key_read(const struct cli *cli, const char *path, struct backup_key *ret)
{
    enum { HEX = 2 * BACKUP_KEY_LEN };
    CLEANUP(passphrase) struct passphrase raw = {0};
    size_t len = 0;
    int rc = passphrase_read(cli, path, &raw);

    if (rc != EXIT_OK)
        return rc;
    ret->derived = false;
    if (raw.len == BACKUP_KEY_LEN)
        memcpy(ret->bytes, raw.text, BACKUP_KEY_LEN);
    else if (raw.len != HEX || sodium_hex2bin(ret->bytes, BACKUP_KEY_LEN, raw.text, HEX, NULL, &len, NULL) != 0 ||
             len != BACKUP_KEY_LEN)
        return cli_fail(cli, EXIT_FAILED,
                        "%s contains no valid key; expected 64 hexadecimal digits, as from 'openssl rand -hex 32'",
                        path);
    return EXIT_OK;
}

/* ---- the terminal ----------------------------------------------------------------------------------------------- */

static int passphrase_prompt(const struct cli *cli, const char *question, struct passphrase *ret)
{
    struct termios before, quiet;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return cli_fail(cli, EXIT_FAILED, "cannot prompt for a passphrase: %s", strerror(errno));
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    (void)fprintf(cli->err, "%s: ", question);
    (void)fflush(cli->err);
    ssize_t n = read(STDIN_FILENO, ret->text, sizeof ret->text);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fprintf(cli->err, "\n");
    ret->len = n > 0 ? (size_t)n : 0;
    line_end_cut(ret);
    return EXIT_OK;
}

static int passphrase_get(const struct cli *cli, const struct backup_key_source *source, bool twice,
                          struct passphrase *ret)
{
    CLEANUP(passphrase) struct passphrase again = {0};

    if (source->passphrase_file)
        return passphrase_read(cli, source->passphrase_file, ret);
    if (!isatty(STDIN_FILENO))
        return cli_fail(cli, EXIT_USAGE,
                        "the backup is encrypted: use --passphrase-file FILE ('-' is standard input) or "
                        "--key-file FILE");
    int rc = passphrase_prompt(cli, "Passphrase", ret);
    if (rc == EXIT_OK && twice)
        rc = passphrase_prompt(cli, "Repeat passphrase", &again);
    if (rc == EXIT_OK && twice && (again.len != ret->len || memcmp(again.text, ret->text, ret->len) != 0))
        rc = cli_fail(cli, EXIT_FAILED, "the passphrases do not match");
    return rc;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

static int source_check(const struct cli *cli, const struct backup_key_source *source)
{
    if (sodium_init() < 0)
        return cli_fail(cli, EXIT_FAILED, "libsodium cannot be initialised");
    if (source->key_file && source->passphrase_file)
        return cli_fail(cli, EXIT_USAGE, "--key-file and --passphrase-file cannot be combined");
    return EXIT_OK;
}

int backup_key_choose(const struct cli *cli, const struct backup_key_source *source, struct backup_key *ret)
{
    CLEANUP(passphrase) struct passphrase phrase = {0};
    struct berth_err err;
    int rc = source_check(cli, source);

    if (rc != EXIT_OK)
        return rc;
    if (source->key_file)
        return key_read(cli, source->key_file, ret);
    rc = passphrase_get(cli, source, true, &phrase);
    if (rc != EXIT_OK)
        return rc;
    if (phrase.len < BACKUP_PASSPHRASE_MIN || phrase.len > BACKUP_PASSPHRASE_MAX)
        return cli_fail(cli, EXIT_FAILED, "the passphrase must have %d to %d bytes", BACKUP_PASSPHRASE_MIN,
                        BACKUP_PASSPHRASE_MAX);
    backup_key_salt(ret);
    return backup_key_derive(ret, phrase.text, phrase.len, &err) < 0 ? cli_fail(cli, EXIT_FAILED, "%s", err.text)
                                                                     : EXIT_OK;
}

int backup_key_find(const struct cli *cli, const struct backup_key_source *source, enum backup_kind kind,
                    struct backup_key *key)
{
    CLEANUP(passphrase) struct passphrase phrase = {0};
    struct berth_err err;
    int rc = source_check(cli, source);

    if (rc != EXIT_OK)
        return rc;
    if (kind == BACKUP_KEY)
        return source->key_file ? key_read(cli, source->key_file, key)
                                : cli_fail(cli, EXIT_USAGE, "the backup is encrypted with a key: use --key-file FILE");
    if (source->key_file)
        return cli_fail(cli, EXIT_USAGE, "the backup is encrypted with a passphrase, not with a key");
    rc = passphrase_get(cli, source, false, &phrase);
    if (rc != EXIT_OK)
        return rc;
    return backup_key_derive(key, phrase.text, phrase.len, &err) < 0 ? cli_fail(cli, EXIT_FAILED, "%s", err.text)
                                                                     : EXIT_OK;
}

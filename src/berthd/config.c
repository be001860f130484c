#include "berthd/config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINE_BYTES_MAX = 4096, LINES_MAX = 1000 };

/* ---- ownership -------------------------------------------------------------------------------------------------- */

/* A world-writable folder is accepted if it has the sticky bit, so that users cannot replace others' files. */
static bool owned_by_root(const struct stat *st)
{
    bool shared = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    return st->st_uid == 0 && (shared || !(st->st_mode & (S_IWGRP | S_IWOTH)));
}

/* Checks that only root could redirect the given path by a link or a writable folder. The error names that part. */
static int links_check_root(const char *path, const char *what, struct berth_err *err)
{
    char part[PATH_MAX];
    struct stat st;
    (void)snprintf(part, sizeof part, "%s", path);
    for (char *slash = strrchr(part, '/'); slash; slash = strrchr(part, '/')) {
        if (lstat(*part ? part : "/", &st) < 0)
            return err_set(err, errno, "%s '%s': %s", what, path, strerror(errno));
        if (S_ISLNK(st.st_mode) ? st.st_uid != 0 : !owned_by_root(&st))
            return err_set(err, EPERM, "%s '%s': '%s' must belong to root and be writable only by root", what, path,
                           part);
        *slash = '\0';
    }
    return 0;
}

/* Checks the file and every folder above it, both as given and with links resolved. */
static int root_check(const char *path, const char *what, struct stat *ret, struct berth_err *err)
{
    char real[PATH_MAX];
    if (*path != '/' || !realpath(path, real))
        return err_set(err, *path == '/' ? errno : EINVAL, "%s '%s': %s", what, path,
                       *path == '/' ? strerror(errno) : "expected an absolute path");
    if (stat(real, ret) < 0)
        return err_set(err, errno, "%s '%s': %s", what, path, strerror(errno));
    if (!S_ISREG(ret->st_mode))
        return err_set(err, EINVAL, "%s '%s' is not a file", what, path);
    int rc = links_check_root(path, what, err);
    if (rc < 0)
        return rc;
    struct stat st = *ret;
    for (;;) {
        if (!owned_by_root(&st))
            return err_set(err, EPERM, "%s '%s': '%s' must belong to root and be writable only by root", what, path,
                           *real ? real : "/");
        char *slash = strrchr(real, '/');
        if (!slash)
            return 0;
        *slash = '\0';
        if (stat(*real ? real : "/", &st) < 0)
            return err_set(err, errno, "%s '%s': %s", what, path, strerror(errno));
    }
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* Accepts programs with the command line of sendmail. */
static int mail_command_check(const char *value, struct berth_err *err)
{
    static const char *const names[] = {"sendmail", "msmtp", "ssmtp"};
    const char *slash = strrchr(value, '/');
    struct stat st;
    bool known = false;
    for (size_t i = 0; *value == '/' && i < sizeof names / sizeof *names; i++)
        known = known || strcmp(slash + 1, names[i]) == 0;
    if (!known)
        return err_set(err, EINVAL, "mail_command: expected the absolute path of sendmail, msmtp or ssmtp, not '%s'",
                       value);
    int rc = root_check(value, "mail_command", &st, err);
    if (rc == 0 && !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        rc = err_set(err, EACCES, "mail_command '%s' is not a program", value);
    return rc;
}

static const struct config_entry {
    const char *name;
    size_t at; /* offset of a char * */
    int (*check)(const char *value, struct berth_err *err);
} entries[] = {
    {"mail_command", offsetof(struct daemon_config, mail_command), mail_command_check},
};

/* Removes surrounding blanks, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t len = strlen(text); len && strchr(" \t\r\n", text[len - 1]); len--)
        text[len - 1] = '\0';
    return text;
}

static int line_read(char *line, struct daemon_config *ret, struct berth_err *err)
{
    char *name = trim(line), *equals = strchr(name, '=');
    if (!*name || *name == '#')
        return 0;
    if (!equals)
        return err_set(err, EINVAL, "expected NAME = VALUE");
    *equals = '\0';
    name = trim(name);
    char *value = trim(equals + 1);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        char **to = (char **)(void *)((char *)ret + entries[i].at);
        if (strcmp(entries[i].name, name) != 0)
            continue;
        if (*to)
            return err_set(err, EINVAL, "%s is set twice", name);
        int rc = *value ? entries[i].check(value, err) : 0;
        if (rc == 0 && *value)
            *to = mem_strdup(value);
        return rc;
    }
    return err_set(err, EINVAL, "there is no setting '%s' in this file", name);
}

static void file_cleanup(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

int daemon_config_read(const char *path, struct daemon_config *ret, struct berth_err *err)
{
    CLEANUP(file) FILE *file = NULL;
    char line[LINE_BYTES_MAX];
    struct stat st;
    int rc = 0;
    *ret = (struct daemon_config){0};
    if (!path && access(DAEMON_CONFIG_PATH, F_OK) != 0 && errno == ENOENT)
        return 0;
    path = path ? path : DAEMON_CONFIG_PATH;
    rc = root_check(path, "the configuration file", &st, err);
    if (rc < 0)
        return rc;
    file = fopen(path, "re");
    if (!file)
        return err_set(err, errno, "cannot read the configuration file '%s': %s", path, strerror(errno));
    for (int number = 1; rc == 0 && fgets(line, sizeof line, file); number++) {
        if (number > LINES_MAX || (!strchr(line, '\n') && strlen(line) == sizeof line - 1))
            rc = err_set(err, EFBIG, "a line or the file is too long");
        else
            rc = line_read(line, ret, err);
        if (rc < 0)
            rc = err_prefix(err, "%s, line %d", path, number);
    }
    if (rc == 0 && ferror(file))
        rc = err_set(err, EIO, "cannot read the configuration file '%s'", path);
    if (rc < 0)
        daemon_config_done(ret);
    return rc;
}

void daemon_config_done(struct daemon_config *c)
{
    mem_free(c->mail_command);
    *c = (struct daemon_config){0};
}

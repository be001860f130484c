#include "cli/show/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

enum { TEXT_MAX = 64 * 1024 * 1024 };

static const char *editor_command(void)
{
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");

    return visual && *visual ? visual : editor && *editor ? editor : "vi";
}

int editor_open(struct editor *e, const char *name, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    const char *folder = getenv("TMPDIR");

    str_addf(&path, "%s/berth-%s-XXXXXX.yaml", folder && *folder ? folder : "/tmp", name);
    for (char *p = strrchr(path.at, '/') + 1; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", *p))
            *p = '_';
    int fd = mkostemps(path.at, (int)strlen(".yaml"), O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return err_set(err, errno, "cannot create a temporary file to edit (%s): %s", path.at, strerror(errno));
    (void)close(fd);
    e->path = str_take(&path);
    return 0;
}

static int file_write(const char *path, const struct str *text, struct berth_err *err)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fwrite(str_text(text), 1, text->len, file) == text->len;

    if (file && fclose(file) != 0)
        ok = false;
    return ok ? 0 : err_set(err, errno ? errno : EIO, "cannot write %s: %s", path, strerror(errno ? errno : EIO));
}

static int file_read(const char *path, struct str *to, struct berth_err *err)
{
    FILE *file = fopen(path, "re");
    char buf[4096];
    size_t n;

    if (!file)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    str_clear(to);
    while ((n = fread(buf, 1, sizeof buf, file)) > 0 && to->len <= TEXT_MAX)
        str_add_bytes(to, buf, n);
    bool failed = ferror(file);
    (void)fclose(file);
    if (failed || to->len > TEXT_MAX)
        return err_set(err, EIO, "cannot read %s", path);
    return 0;
}

/* The variable may contain arguments ("code --wait"), so a shell splits it; the path is passed as a separate
 * argument. */
static int editor_wait(const char *command, const char *path, struct berth_err *err)
{
    CLEANUP(str) struct str line = {0};
    int status;

    str_addf(&line, "%s \"$1\"", command);
    pid_t pid = fork();
    if (pid < 0)
        return err_set(err, errno, "cannot start the editor: %s", strerror(errno));
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", str_text(&line), "sh", path, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, errno, "cannot wait for the editor: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(err, ECHILD, "editor '%s' not found; set VISUAL or EDITOR", command);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, ECHILD, "the editor '%s' failed", command);
    return 0;
}

int editor_run(struct editor *e, struct str *text, struct berth_err *err)
{
    int rc = file_write(e->path, text, err);

    if (rc == 0)
        rc = editor_wait(editor_command(), e->path, err);
    return rc == 0 ? file_read(e->path, text, err) : rc;
}

void editor_close(struct editor *e)
{
    if (e->path)
        (void)unlink(e->path);
    mem_free(take_ptr(&e->path));
}

void editor_save_text(struct editor *e, const struct str *text)
{
    (void)file_write(e->path, text, NULL);
    mem_free(take_ptr(&e->path));
}

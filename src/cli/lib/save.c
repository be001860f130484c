#include "cli/lib/save.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

int save_begin(struct saved_file *s, const char *path, struct berth_err *err)
{
    struct str beside = {0};

    *s = (struct saved_file){.path = path, .fd = -1};
    if (access(path, F_OK) == 0)
        return err_set(err, EEXIST, "%s already exists; choose another file or remove it", path);
    str_addf(&beside, "%s.part-XXXXXX", path);
    s->beside = str_take(&beside);
    s->fd = mkostemp(s->beside, O_CLOEXEC); /* 0600 */
    if (s->fd >= 0)
        return 0;
    int code = errno;
    mem_free(take_ptr(&s->beside));
    return err_set(err, code, "cannot create a temporary file next to %s: %s", path, strerror(code));
}

int save_write(struct saved_file *s, const void *at, size_t len, struct berth_err *err)
{
    const char *p = at;

    while (len > 0) {
        ssize_t n = write(s->fd, p, len);
        if (n < 0 && errno != EINTR)
            return err_set(err, errno, "cannot write %s: %s", s->path, strerror(errno));
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int save_end(struct saved_file *s, struct berth_err *err)
{
    assert(s->beside);
    if (fsync(s->fd) != 0)
        return err_set(err, errno, "cannot write %s: %s", s->path, strerror(errno));
    /* Unlike rename, link does not replace a file created in the meantime; some file systems have no hard links. */
    bool made = link(s->beside, s->path) == 0;
    if (!made && (errno == EPERM || errno == EOPNOTSUPP))
        made = rename(s->beside, s->path) == 0;
    if (!made)
        return err_set(err, errno, "cannot create %s: %s", s->path, strerror(errno));
    save_drop(s);
    return 0;
}

void save_drop(struct saved_file *s)
{
    if (s->beside) {
        (void)unlink(s->beside);
        (void)close(s->fd);
    }
    mem_free(take_ptr(&s->beside));
}

int save_new(const char *path, const struct str *text, struct berth_err *err)
{
    CLEANUP(save) struct saved_file save = {0};
    int rc = save_begin(&save, path, err);

    if (rc == 0)
        rc = save_write(&save, str_text(text), text->len, err);
    return rc == 0 ? save_end(&save, err) : rc;
}

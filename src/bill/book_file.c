/* book_file.c - reads and validates the book's file, and replaces it as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "bill/book.h"

enum { FILE_VERSION = 1 };

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *row_doc(const struct book_row *row)
{
    json_t *hours = json_object();
    for (size_t i = 0; i < row->hours_len; i++)
        (void)json_object_set_new(hours, row->hours[i].resource, json_integer(row->hours[i].hours));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "month", row->month, "user", row->user, "group", row->group,
                     "queue", row->queue, "outcome", row->outcome, "ended", (json_int_t)row->ended, "nanohours", hours);
}

static char *book_text(const struct usage_book *b)
{
    json_t *rows = json_array(), *lowered = json_array();
    for (size_t i = 0; i < b->rows_len; i++)
        (void)json_array_append_new(rows, row_doc(&b->rows[i]));
    for (size_t i = 0; i < b->lowered_len; i++) {
        const struct lowered_limit *l = &b->lowered[i];
        (void)json_array_append_new(lowered, json_pack("{s:s, s:s, s:O, s:O}", "quota", l->quota, "month", l->month,
                                                       "was", l->was, "set", l->set));
    }
    json_t *doc = json_pack("{s:i, s:I, s:I, s:o, s:o}", "berth_book", FILE_VERSION, "after", (json_int_t)b->after,
                            "missed", (json_int_t)b->missed, "rows", rows, "lowered", lowered);
    char *text = json_dumps(doc, JSON_INDENT(1));
    json_decref(doc);
    return text;
}

static int write_all(int fd, const char *text)
{
    for (size_t len = strlen(text); len;) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* A renamed file is durable only once its folder is synced. */
static void folder_sync(const char *path)
{
    CLEANUP(mem) char *folder = mem_strdup(path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

int book_save(const struct usage_book *b, const char *path, struct berth_err *err)
{
    CLEANUP(str) struct str next = {0};
    str_addf(&next, "%s.next", path);
    int fd = open(str_text(&next), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", str_text(&next), strerror(errno));
    char *text = book_text(b);
    int rc = write_all(fd, text);
    free(text);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(str_text(&next), path) < 0)
        rc = -errno;
    if (rc < 0) {
        (void)unlink(str_text(&next));
        return err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
    }
    folder_sync(path);
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static uint64_t count_at(const json_t *doc, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(doc, key));
    return n > 0 ? (uint64_t)n : 0;
}

static int rows_read(struct usage_book *b, const json_t *rows, struct berth_err *err)
{
    size_t i;
    json_t *doc, *value;
    const char *resource;
    json_array_foreach(rows, i, doc)
    {
        struct book_row *row = NULL;
        if (!month_valid(text_at(doc, "month")))
            return err_set(err, EBADMSG, "rows[%zu]: missing month", i);
        int rc = book_row_open(b, text_at(doc, "month"), text_at(doc, "user"), text_at(doc, "group"),
                               text_at(doc, "queue"), text_at(doc, "outcome"), &row, err);
        json_object_foreach(json_object_get(doc, "nanohours"), resource, value) if (rc == 0) rc =
            book_row_add(row, resource, json_integer_value(value), err);
        if (rc < 0)
            return rc;
        row->ended += count_at(doc, "ended");
    }
    return 0;
}

static int lowered_read(struct usage_book *b, const json_t *list, struct berth_err *err)
{
    size_t i;
    json_t *doc;
    json_array_foreach(list, i, doc)
    {
        const json_t *was = json_object_get(doc, "was"), *set = json_object_get(doc, "set");
        if (!*text_at(doc, "quota") || !month_valid(text_at(doc, "month")) || !json_is_object(was) ||
            !json_is_object(set))
            return err_set(err, EBADMSG, "lowered[%zu]: expected a quota, a month and limits", i);
        struct lowered_limit *l = lowered_limit_add(b, text_at(doc, "quota"), text_at(doc, "month"));
        (void)json_object_update(l->was, (json_t *)was);
        (void)json_object_update(l->set, (json_t *)set);
    }
    return 0;
}

int book_load(const char *path, struct usage_book *ret, struct berth_err *err)
{
    struct usage_book b = {0};
    json_error_t where;
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        *ret = b;
        return 0;
    }
    json_t *doc = json_load_file(path, 0, &where);
    int rc = 0;
    if (!doc)
        rc = err_set(err, EBADMSG, "%s:%d: %s", path, where.line, where.text);
    else if (json_integer_value(json_object_get(doc, "berth_book")) != FILE_VERSION)
        rc = err_set(err, EBADMSG, "%s: not a book of berth-bill, or of another version", path);
    b.after = count_at(doc, "after");
    b.missed = count_at(doc, "missed");
    if (rc == 0)
        rc = rows_read(&b, json_object_get(doc, "rows"), err);
    if (rc == 0)
        rc = lowered_read(&b, json_object_get(doc, "lowered"), err);
    json_decref(doc);
    if (rc < 0)
        book_done(&b);
    else
        *ret = b;
    return rc;
}

/* trace.c - jobs in memory, and line-by-line reading of text files. */
#include "sim/trace/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum { LINE_FIRST = 256, LINE_MOST = 1 << 20 };

void sim_trace_init(struct sim_trace *t)
{
    *t = (struct sim_trace){0};
    intern_init(&t->words);
}

void sim_trace_done(struct sim_trace *t)
{
    intern_done(&t->words);
    mem_free(t->jobs);
    *t = (struct sim_trace){0};
}

void sim_trace_add(struct sim_trace *t, const struct sim_job *job)
{
    if (t->len == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->jobs = mem_resize(t->jobs, t->cap, sizeof *t->jobs);
    }
    t->jobs[t->len++] = *job;
}

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
    const struct sim_job *jobs = ctx, *x = &jobs[a], *y = &jobs[b];
    if (x->submit_ns != y->submit_ns)
        return x->submit_ns < y->submit_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void sim_trace_sort(struct sim_trace *t)
{
    bool sorted = true;
    for (uint32_t i = 1; i < t->len; i++)
        sorted = sorted && compare(t->jobs, i - 1, i) <= 0;
    if (sorted)
        return;
    uint32_t *order = mem_array(2 * t->len, sizeof *order);
    for (uint32_t i = 0; i < t->len; i++)
        order[i] = i;
    sort_indices(order, order + t->len, t->len, compare, t->jobs);
    struct sim_job *jobs = mem_array(t->len, sizeof *jobs);
    for (size_t i = 0; i < t->len; i++)
        jobs[i] = t->jobs[order[i]];
    mem_free(order);
    mem_free(t->jobs);
    t->jobs = jobs;
    t->cap = t->len;
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

int sim_lines_open(struct sim_lines *l, const char *path, struct berth_err *err)
{
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        return err_set(err, errno ? errno : ENOMEM, "%s: %s", path, strerror(errno ? errno : ENOMEM));
    *l = (struct sim_lines){.path = path, .file = file, .text = mem_alloc(LINE_FIRST), .cap = LINE_FIRST};
    return 0;
}

void sim_lines_close(struct sim_lines *l)
{
    if (l->file)
        (void)gzclose_r(l->file);
    mem_free(l->text);
    *l = (struct sim_lines){0};
}

static int read_error(const struct sim_lines *l, struct berth_err *err)
{
    int code;
    const char *text = gzerror(l->file, &code);
    if (code == Z_OK || code == Z_STREAM_END)
        return 0;
    if (code == Z_ERRNO)
        return err_set(err, errno ? errno : EIO, "%s: %s", l->path, strerror(errno ? errno : EIO));
    return err_set(err, EIO, "%s, after line %zu: the compressed file is damaged or cut off: %s", l->path, l->number,
                   text);
}

int sim_lines_next(struct sim_lines *l, struct berth_err *err)
{
    size_t len = 0;
    while (gzgets(l->file, l->text + len, (int)(l->cap - len))) {
        len += strlen(l->text + len);
        if (len && l->text[len - 1] == '\n') {
            l->number++;
            len -= len > 1 && l->text[len - 2] == '\r' ? 2 : 1;
            l->text[len] = 0;
            return 1;
        }
        if (len + 1 < l->cap)
            break; /* the last line without a line end, or a NUL byte */
        if (l->cap >= LINE_MOST) {
            l->number++;
            return sim_lines_error(l, err, "longer than %d bytes", LINE_MOST);
        }
        l->cap *= 2;
        l->text = mem_resize(l->text, l->cap, 1);
    }
    int rc = read_error(l, err);
    if (rc || len == 0)
        return rc;
    l->number++;
    return gzeof(l->file) ? 1 : sim_lines_error(l, err, "a NUL byte; this is not a text file");
}

int sim_lines_error(const struct sim_lines *l, struct berth_err *err, const char *fmt, ...)
{
    char text[BERTH_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(err, EINVAL, "%s, line %zu: %s", l->path, l->number, text);
}

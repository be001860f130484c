#include "cli/lib/progress.h"

#include "cli/lib/human.h"

enum { BAR_WIDTH = 30 };
#define FIRST_DRAW_NS ((int64_t)250000000)
#define REDRAW_NS ((int64_t)50000000)

void progress_start(struct progress *p, const struct cli *cli, const char *what)
{
    *p = (struct progress){.cli = cli, .what = what, .start_ns = cli_clock_ns()};
}

void progress_update(void *ctx, size_t done, size_t total)
{
    struct progress *p = ctx;

    if (!p->cli->progress || total == 0)
        return;
    int64_t now_ns = cli_clock_ns();
    if (now_ns - p->start_ns < FIRST_DRAW_NS || now_ns - p->drawn_ns < REDRAW_NS)
        return;
    if (done > total)
        done = total;
    size_t filled = (size_t)((double)done / (double)total * BAR_WIDTH);
    fprintf(p->cli->err, "\r%-9s [", p->what);
    for (size_t i = 0; i < BAR_WIDTH; i++)
        fputc(i < filled ? '#' : '.', p->cli->err);
    fprintf(p->cli->err, "] %3.0f%%  %s of %s", (double)done / (double)total * 100, show_count(done).text,
            show_count(total).text);
    if (done && done < total) {
        double left_s = (double)(now_ns - p->start_ns) / 1e9 * (double)(total - done) / (double)done;
        fprintf(p->cli->err, ", about %s left", show_age((int64_t)(left_s + 0.5)).text);
    }
    fputs("\033[K", p->cli->err);
    fflush(p->cli->err);
    p->drawn = true;
    p->drawn_ns = now_ns;
}

void progress_end(struct progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", p->cli->err);
        fflush(p->cli->err);
    }
    p->drawn = false;
}

#include "cli/lib/unified.h"

#include <string.h>

#include "base/vec.h"

struct text_line {
    const char *at;
    size_t len;
};

struct text_lines {
    struct text_line *at;
    size_t len, cap;
};

static void lines_cleanup(struct text_lines *l)
{
    vec_done(l);
}

static struct text_lines lines_of(const char *text)
{
    struct text_lines lines = {0};

    while (*text) {
        size_t len = strcspn(text, "\n");
        vec_push(&lines, ((struct text_line){text, len}));
        text += len + (text[len] == '\n');
    }
    return lines;
}

static bool same(const struct text_line *a, const struct text_line *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

/* One line of the edit script: ' ' of both texts, '-' of the old, '+' of the new text. */
struct edit {
    char op;
    const struct text_line *line;
};

struct edit_script {
    struct edit *at;
    size_t len, cap;
};

static void script_cleanup(struct edit_script *s)
{
    vec_done(s);
}

static void script_reverse(struct edit_script *s, size_t from)
{
    for (size_t i = from, j = s->len; i + 1 < j; i++) {
        struct edit swapped = s->at[i];
        s->at[i] = s->at[--j];
        s->at[j] = swapped;
    }
}

/* The rows of Myers' search: row d has the furthest x on each diagonal k = -d, -d+2, ..., d. */
struct myers_trace {
    int *at;
    size_t len, cap;
};

static size_t row_start(int d)
{
    return (size_t)d * (size_t)(d + 1) / 2;
}

static int row_get(const struct myers_trace *t, int d, int k)
{
    return t->at[row_start(d) + (size_t)((k + d) / 2)];
}

/* Returns whether the furthest point of diagonal k is reached from diagonal k + 1 of row d - 1 (an insertion);
 * otherwise it is reached from k - 1 (a deletion). */
static bool reached_by_insertion(const struct myers_trace *t, int d, int k)
{
    return k == -d || (k != d && row_get(t, d - 1, k - 1) < row_get(t, d - 1, k + 1));
}

/* Returns the length of the shortest edit script; -1: more than UNIFIED_EDITS_MAX. */
static int search(const struct text_line *a, int a_len, const struct text_line *b, int b_len, struct myers_trace *t)
{
    for (int d = 0; d <= UNIFIED_EDITS_MAX; d++) {
        for (int k = -d; k <= d; k += 2) {
            int x = 0;
            if (d > 0)
                x = reached_by_insertion(t, d, k) ? row_get(t, d - 1, k + 1) : row_get(t, d - 1, k - 1) + 1;
            while (x < a_len && x - k < b_len && x - k >= 0 && same(&a[x], &b[x - k]))
                x++;
            vec_push(t, x);
            if (x >= a_len && x - k >= b_len)
                return d;
        }
    }
    return -1;
}

/* Walks back from the end of both texts, and appends the edit script in order. */
static void walk(const struct text_line *a, int a_len, const struct text_line *b, int b_len,
                 const struct myers_trace *t, int d, struct edit_script *script)
{
    size_t from = script->len;
    int x = a_len, y = b_len;

    for (; d > 0; d--) {
        int k = x - y;
        bool down = reached_by_insertion(t, d, k);
        int before_k = down ? k + 1 : k - 1;
        int before_x = row_get(t, d - 1, before_k), before_y = before_x - before_k;
        int start_x = down ? before_x : before_x + 1; /* first common line after the edit */
        for (; x > start_x; x--, y--)
            vec_push(script, ((struct edit){' ', &a[x - 1]}));
        vec_push(script, (down ? (struct edit){'+', &b[y - 1]} : (struct edit){'-', &a[x - 1]}));
        x = before_x;
        y = before_y;
    }
    for (; x > 0; x--)
        vec_push(script, ((struct edit){' ', &a[x - 1]}));
    script_reverse(script, from);
}

static void script_make(const struct text_lines *a, const struct text_lines *b, struct edit_script *script)
{
    size_t head = 0, tail = 0;
    struct myers_trace trace = {0};

    while (head < a->len && head < b->len && same(&a->at[head], &b->at[head]))
        vec_push(script, ((struct edit){' ', &a->at[head++]}));
    while (tail < a->len - head && tail < b->len - head && same(&a->at[a->len - 1 - tail], &b->at[b->len - 1 - tail]))
        tail++;
    const struct text_line *a_mid = a->at + head, *b_mid = b->at + head;
    int a_len = (int)(a->len - head - tail), b_len = (int)(b->len - head - tail);
    int edits = search(a_mid, a_len, b_mid, b_len, &trace);
    if (edits >= 0) {
        walk(a_mid, a_len, b_mid, b_len, &trace, edits, script);
    } else {
        for (int i = 0; i < a_len; i++)
            vec_push(script, ((struct edit){'-', &a_mid[i]}));
        for (int i = 0; i < b_len; i++)
            vec_push(script, ((struct edit){'+', &b_mid[i]}));
    }
    for (size_t i = a->len - tail; i < a->len; i++)
        vec_push(script, ((struct edit){' ', &a->at[i]}));
    vec_done(&trace);
}

/* Returns the end of the hunk that starts with the change at `first`. Changes nearer than twice the context share a
 * hunk. */
static size_t hunk_end(const struct edit_script *s, size_t first)
{
    size_t last = first;

    for (size_t i = first; i < s->len && i <= last + 2 * UNIFIED_CONTEXT + 1; i++)
        if (s->at[i].op != ' ')
            last = i;
    return last + 1;
}

static void hunk_write(struct str *to, const struct edit_script *s, size_t from, size_t end, size_t a_line,
                       size_t b_line)
{
    size_t a_len = 0, b_len = 0;

    for (size_t i = from; i < end; i++) {
        a_len += s->at[i].op != '+';
        b_len += s->at[i].op != '-';
    }
    /* For an empty side the line before it is named, as diff does. */
    str_addf(to, "@@ -%zu,%zu +%zu,%zu @@\n", a_len ? a_line + 1 : a_line, a_len, b_len ? b_line + 1 : b_line, b_len);
    for (size_t i = from; i < end; i++) {
        str_add_char(to, s->at[i].op);
        str_add_bytes(to, s->at[i].line->at, s->at[i].line->len);
        str_add_char(to, '\n');
    }
}

bool unified_diff(struct str *to, const char *old_name, const char *new_name, const char *old_text,
                  const char *new_text)
{
    CLEANUP(lines) struct text_lines a = lines_of(old_text), b = lines_of(new_text);
    CLEANUP(script) struct edit_script script = {0};
    size_t a_line = 0, b_line = 0;
    bool differs = false;

    script_make(&a, &b, &script);
    for (size_t i = 0; i < script.len;) {
        size_t first = i;
        while (first < script.len && script.at[first].op == ' ')
            first++;
        if (first == script.len)
            break;
        if (!differs)
            str_addf(to, "--- %s\n+++ %s\n", old_name, new_name);
        differs = true;
        size_t from = first > i + UNIFIED_CONTEXT ? first - UNIFIED_CONTEXT : i;
        size_t end = hunk_end(&script, first) + UNIFIED_CONTEXT;
        end = end < script.len ? end : script.len;
        a_line += from - i; /* the skipped lines are common */
        b_line += from - i;
        hunk_write(to, &script, from, end, a_line, b_line);
        for (i = from; i < end; i++) {
            a_line += script.at[i].op != '+';
            b_line += script.at[i].op != '-';
        }
    }
    return differs;
}

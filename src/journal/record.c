/* record.c - writes journal records. */
#include "journal/record.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "journal/scan.h"

static void member(struct str *to, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    str_addf(to, ",\"%s\":", key);
    str_add_json(to, text);
}

void journal_begin(struct str *to, const struct journal_head *head)
{
    str_addf(to, "{\"j\":%d,\"kind\":", JOURNAL_VERSION);
    str_add_json(to, head->kind);
    str_addf(to, ",\"at\":%" PRId64, head->at_ns);
    member(to, "who", head->who);
    member(to, "subject", head->subject);
    member(to, "token", head->token);
    member(to, "remote", head->remote);
    str_add(to, ",\"changes\":[");
}

void journal_change(struct str *to, const char *key, const char *doc, size_t len, bool gone)
{
    if (str_text(to)[to->len - 1] == ']')
        str_add_char(to, ',');
    str_add_char(to, '[');
    str_add_json(to, key);
    if (doc || gone) {
        str_add_char(to, ',');
        if (gone)
            str_add(to, "null");
        else
            str_add_bytes(to, doc, len);
    }
    str_add_char(to, ']');
}

void journal_end(struct str *to, const char *extra, size_t len)
{
    str_add_char(to, ']');
    if (len > 2) {
        assert(extra[0] == '{' && extra[len - 1] == '}');
        str_add_char(to, ',');
        str_add_bytes(to, extra + 1, len - 2);
    }
    str_add_char(to, '}');
}

bool journal_kind_has_prefix(struct bytes record, const char *with)
{
    struct bytes kind;
    size_t len = strlen(with);
    return scan_member(record, "kind", &kind) && kind.len > len && memcmp((const char *)kind.at + 1, with, len) == 0;
}

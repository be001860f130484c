/* id.c - the grammar of IDs that users choose, and the reserved words. */
#include <errno.h>
#include <string.h>

#include "control/kind/kind.h"
#include "wire/text/words.h"

/* Words with a meaning in paths, in system files or in the API itself. Sorted. */
static const char *const reserved[] = {
    "all",       "any", "anonymous", "api",  "berth", "cluster", "default", "export", "gateway", "import",
    "localhost", "me",  "nobody",    "none", "null",  "root",    "self",    "system", "true",    "v1",
};

bool id_reserved(const char *folded)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(folded, reserved[i]) == 0)
            return true;
    return false;
}

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

int id_fold(const char *what, const char *text, char ret[static ID_MAX + 1], struct berth_err *err)
{
    char folded[ID_MAX + 1], shown[QUOTE_MAX];
    size_t len = strlen(text);

    if (len == 0)
        return err_set(err, EINVAL, "%s: is empty; expected 1 to %d letters, digits and '-'", what, ID_MAX);
    if (len > ID_MAX)
        return err_set(err, EINVAL, "%s: %s has %zu characters, more than %d", what, quote(text, shown), len, ID_MAX);
    for (size_t i = 0; i <= len; i++) {
        folded[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (i < len && !is_label_char(folded[i]))
            return err_set(err, EINVAL, "%s: %s may have only letters, digits and '-'", what, quote(text, shown));
    }
    if (folded[0] == '-' || folded[len - 1] == '-')
        return err_set(err, EINVAL, "%s: %s may not start or end with '-'", what, quote(text, shown));
    if (id_reserved(folded))
        return err_set(err, EINVAL, "%s: %s is a reserved word; choose another", what, quote(text, shown));
    memcpy(ret, folded, len + 1);
    return 0;
}

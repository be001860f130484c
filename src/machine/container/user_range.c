/* user_range.c - ranges of further uids and gids of an owner. */
#include "machine/container/user_range.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/state_file.h"

#define RANGE_LOW UINT32_C(0x70000000)
#define RANGE_HIGH UINT32_C(0x80000000)
enum {
    SLOTS_LOW = 4094,        /* up to 0x7FFDFFFF */
    SLOT_FIRST_UID = 200000, /* default start of owners' uids; has the first slot */
};

unsigned user_range_slot(uid_t uid)
{
    int64_t from = (int64_t)uid - SLOT_FIRST_UID;
    int64_t slot = from % USER_RANGE_SLOTS;
    return (unsigned)(slot < 0 ? slot + USER_RANGE_SLOTS : slot);
}

struct user_range user_range_of_slot(unsigned slot)
{
    uint32_t base = slot < SLOTS_LOW ? RANGE_LOW + slot * (uint32_t)USER_RANGE_IDS
                                     : RANGE_HIGH + (slot - SLOTS_LOW) * (uint32_t)USER_RANGE_IDS;
    if (slot >= USER_RANGE_SLOTS)
        return (struct user_range){0};
    return (struct user_range){base + 1, USER_RANGE_IDS - 1};
}

/* Splits "NAME:FIRST:COUNT" at its colons; false: invalid line. */
static bool line_read(char *line, const char **ret_name, int64_t *ret_first, int64_t *ret_count)
{
    char *first = strchr(line, ':');
    char *count = first ? strchr(first + 1, ':') : NULL;
    if (!count)
        return false;
    *first++ = '\0';
    *count++ = '\0';
    *ret_name = line;
    return str_parse_i64(first, ret_first) && str_parse_i64(count, ret_count) && *ret_first > 0 && *ret_count > 0 &&
           *ret_first < UINT32_MAX && *ret_count < UINT32_MAX;
}

struct user_range user_range_read(const char *path, const char *name, uid_t uid, uint32_t own)
{
    CLEANUP(mem) char *text = NULL;
    char buf[24], *rest = NULL;
    const char *number = str_u64(uid, buf);
    struct user_range best = {0};
    if (file_read(AT_FDCWD, path, &text, NULL) < 0)
        return best;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *whose;
        int64_t first, count;
        if (!line_read(line, &whose, &first, &count) || (strcmp(whose, name) != 0 && strcmp(whose, number) != 0))
            continue;
        if (count > USER_RANGE_IDS - 1)
            count = USER_RANGE_IDS - 1;
        if (first + count > UINT32_MAX || (own >= first && own < first + count) || count <= best.count)
            continue;
        best = (struct user_range){(uint32_t)first, (uint32_t)count};
    }
    return best;
}

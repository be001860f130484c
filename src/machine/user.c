#include "machine/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "machine/place_file.h"

enum { USERS_FIRST = 200000, USERS_MAX = 100000 };

struct mapped {
    char name[64];
    uid_t uid;
};

struct users {
    struct place *place;
    bool accounts;
    uid_t first;
    pthread_mutex_t lock; /* of what follows, and of the file */
    uid_t next;
    VEC(struct mapped) mapped;
};

/* ---- STATE/users: "OWNER UID" in lines ---- */

static int state_open(const struct users *u)
{
    int fd = open(place_dir(u->place), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int list_read(struct users *u, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = state_open(u);
    CLEANUP(mem) char *text = NULL;
    char *line, *rest = NULL;
    int rc = dir < 0 ? dir : file_read(dir, "users", &text, NULL);

    if (rc == -ENOENT)
        return 0;
    if (rc)
        return err_set(err, -rc, "cannot read '%s/users': %s", place_dir(u->place), strerror(-rc));
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct mapped m = {0};
        char *space = strchr(line, ' ');
        int64_t uid;

        if (!space || space == line || (size_t)(space - line) >= sizeof m.name || !str_parse_i64(space + 1, &uid) ||
            uid <= 0 || uid >= UINT32_MAX)
            return err_set(err, EINVAL, "'%s/users' has a line that is no owner and number: '%s'", place_dir(u->place),
                           line);
        memcpy(m.name, line, (size_t)(space - line));
        m.uid = (uid_t)uid;
        vec_push(&u->mapped, m);
        if (m.uid >= u->next)
            u->next = m.uid + 1;
    }
    return 0;
}

static int list_write(const struct users *u)
{
    CLEANUP(close_fd) int dir = state_open(u);
    CLEANUP(str) struct str text = {0};

    if (dir < 0)
        return dir;
    for (size_t i = 0; i < u->mapped.len; i++)
        str_addf(&text, "%s %u\n", u->mapped.at[i].name, (unsigned)u->mapped.at[i].uid);
    return file_write(dir, "users", str_text(&text), text.len, true);
}

int users_open(struct place *p, bool accounts, uid_t first, struct users **ret, struct berth_err *err)
{
    struct users *u = mem_zalloc(sizeof *u);
    int rc;

    u->place = p;
    u->accounts = accounts;
    u->first = u->next = first ? first : USERS_FIRST;
    pthread_mutex_init(&u->lock, NULL);
    rc = list_read(u, err);
    if (rc) {
        users_free(u);
        return rc;
    }
    *ret = u;
    return 0;
}

void users_free(struct users *u)
{
    if (!u)
        return;
    vec_done(&u->mapped);
    pthread_mutex_destroy(&u->lock);
    mem_free(u);
}

/* ---- accounts of the machine ---- */

/* 0: it is one; -ENOENT: there is none of this name. */
static int account_find(const char *name, struct user *ret, struct berth_err *err)
{
    char buf[16384];
    struct passwd entry, *found = NULL;
    gid_t groups[USER_GROUPS_MAX];
    int len = USER_GROUPS_MAX, rc = getpwnam_r(name, &entry, buf, sizeof buf, &found);

    if (rc == ERANGE)
        return err_set(err, ERANGE, "the entry of '%s' in the list of users is too long", name);
    if (rc || !found)
        return -ENOENT;
    if (entry.pw_uid == 0)
        return err_set(err, EPERM, "'%s' is root here, and nothing runs as root", name);
    if (getgrouplist(name, entry.pw_gid, groups, &len) < 0)
        return err_set(err, E2BIG, "'%s' is in more than %d groups", name, USER_GROUPS_MAX);
    *ret = (struct user){.uid = entry.pw_uid, .gid = entry.pw_gid};
    for (int i = 0; i < len; i++)
        if (groups[i] != 0) /* root's group is for nobody else */
            ret->groups[ret->groups_len++] = groups[i];
    (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    (void)snprintf(ret->home, sizeof ret->home, "%s", entry.pw_dir);
    ret->uids = user_range_read("/etc/subuid", name, ret->uid, ret->uid);
    ret->gids = user_range_read("/etc/subgid", name, ret->uid, ret->gid);
    return 0;
}

/* As a user or as a group: ours have one number for both. */
static bool number_is_known(uid_t number)
{
    char buf[16384];
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;

    return (getpwuid_r(number, &user, buf, sizeof buf, &found_user) == 0 && found_user) ||
           (getgrgid_r(number, &group, buf, sizeof buf, &found_group) == 0 && found_group);
}

/* ---- numbers of our own ---- */

static int number_give(struct users *u, const char *owner, uid_t *ret, struct berth_err *err)
{
    struct mapped m = {0};
    int rc;

    for (size_t i = 0; i < u->mapped.len; i++)
        if (strcmp(u->mapped.at[i].name, owner) == 0) {
            *ret = u->mapped.at[i].uid;
            return 0;
        }
    if (u->mapped.len == USERS_MAX)
        return err_set(err, ENOSPC, "more than %d owners have run something on this node", USERS_MAX);
    while (number_is_known(u->next))
        u->next++;
    m.uid = u->next;
    memcpy(m.name, owner, strlen(owner));
    vec_push(&u->mapped, m);
    rc = list_write(u);
    if (rc) {
        u->mapped.len--;
        return err_set(err, -rc, "cannot keep the number of '%s' in '%s/users': %s", owner, place_dir(u->place),
                       strerror(-rc));
    }
    u->next++;
    *ret = m.uid;
    return 0;
}

/* Two owners whose numbers are far apart may have the same slot: then it is the earlier one's. And nobody's own number is in it. */
static struct user_range range_find(const struct users *u, const char *owner)
{
    struct user_range range;
    size_t own = 0;

    while (own < u->mapped.len && strcmp(u->mapped.at[own].name, owner) != 0)
        own++;
    if (own == u->mapped.len)
        return (struct user_range){0};
    range = user_range_given(user_range_slot(u->mapped.at[own].uid));
    for (size_t i = 0; i < u->mapped.len; i++) {
        uid_t uid = u->mapped.at[i].uid;

        if ((i < own && user_range_slot(uid) == user_range_slot(u->mapped.at[own].uid)) ||
            (uid >= range.first && uid - range.first < range.count))
            return (struct user_range){0};
    }
    return range;
}

/* An account's range, unless it holds numbers that are, or may become, somebody else's of this agent's: owners' without an
 * account, the network half's. */
static struct user_range range_apart(const struct users *u, struct user_range range)
{
    bool apart = (uint64_t)range.first + range.count < u->first || range.first >= (uint64_t)u->first + USERS_MAX;

    for (size_t i = 0; apart && i < u->mapped.len; i++)
        apart = u->mapped.at[i].uid < range.first || u->mapped.at[i].uid - range.first >= range.count;
    return apart ? range : (struct user_range){0};
}

/* A home may be full of the owner's links: only the folder itself is touched. */
static int home_make(const struct user *user, struct berth_err *err)
{
    CLEANUP(close_fd) int fd = -1;

    if (mkdir(user->home, 0700) && errno != EEXIST)
        return err_set(err, errno, "cannot make the home '%s': %s", user->home, strerror(errno));
    fd = open(user->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, user->uid, user->gid)))
        return err_set(err, errno, "cannot give the home '%s' to its owner: %s", user->home, strerror(errno));
    return 0;
}

int users_find(struct users *u, const char *owner, struct user *ret, struct berth_err *err)
{
    struct user found = {0};
    int rc;

    if (strlen(owner) >= sizeof found.name || strpbrk(owner, " \n") || place_path(u->place, "homes", owner, found.home))
        return err_set(err, EINVAL, "'%s' cannot be the name of an owner", owner);
    if (u->accounts && geteuid() == 0) {
        struct user account = {0};

        rc = account_find(owner, &account, err);
        if (rc == 0) {
            pthread_mutex_lock(&u->lock);
            account.uids = range_apart(u, account.uids);
            account.gids = range_apart(u, account.gids);
            pthread_mutex_unlock(&u->lock);
            *ret = account;
        }
        if (rc != -ENOENT)
            return rc;
    }
    memcpy(found.name, owner, strlen(owner));
    found.uid = geteuid();
    found.gid = getegid();
    if (geteuid() == 0) {
        pthread_mutex_lock(&u->lock);
        rc = number_give(u, owner, &found.uid, err);
        found.uids = found.gids = range_find(u, owner);
        pthread_mutex_unlock(&u->lock);
        if (rc)
            return rc;
        found.gid = (gid_t)found.uid;
        found.given = true;
    }
    rc = home_make(&found, err);
    if (rc)
        return rc;
    *ret = found;
    return 0;
}

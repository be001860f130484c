#include "machine/container/user.h"

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
#include "machine/container/leftover.h"
#include "machine/container/user_move.h"
#include "machine/launch/state_file.h"

#define LOCAL "users"           /* uids assigned by this node */
#define CLUSTER "users.cluster" /* uids assigned by the daemon */
enum { USERS_FIRST = 200000, USERS_MAX = 100000, ACCOUNT_UID_MIN = 1000, GROUP_BYTES_MAX = 16 << 20 };

struct mapped_user {
    char name[64];
    uid_t uid;
    bool in_use; /* a uid of this node: an instance was started with it and may still run */
};

struct user_mapping {
    const char *file;
    VEC(struct mapped_user) at; /* in order of assignment */
};

struct user_table {
    struct state_dir *state_dir;
    char *accounts; /* members of this group run as their accounts; NULL: no accounts */
    uid_t first;
    pthread_mutex_t lock; /* protects the fields below and the files */
    pthread_cond_t moved;
    char moving[64]; /* owner whose files are being moved; "": none */
    uid_t next;
    struct user_mapping local, cluster;
};

/* ---- STATE/users, STATE/users.cluster: lines of "OWNER UID" ----------------------------------------------------- */

static int state_open(const struct user_table *u)
{
    int fd = open(state_dir_path(u->state_dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int list_read(struct user_table *u, struct user_mapping *m, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = state_open(u);
    CLEANUP(mem) char *text = NULL;
    char *line, *rest = NULL;
    int rc = dir < 0 ? dir : file_read(dir, m->file, &text, NULL);

    if (rc == -ENOENT)
        return 0;
    if (rc)
        return err_set(err, -rc, "cannot read '%s/%s': %s", state_dir_path(u->state_dir), m->file, strerror(-rc));
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct mapped_user one = {0};
        char *space = strchr(line, ' ');
        int64_t uid;

        if (!space || space == line || (size_t)(space - line) >= sizeof one.name || !str_parse_i64(space + 1, &uid) ||
            uid <= 0 || uid >= UINT32_MAX)
            return err_set(err, EINVAL, "'%s/%s' has a line that is not an owner and a UID: '%s'",
                           state_dir_path(u->state_dir), m->file, line);
        memcpy(one.name, line, (size_t)(space - line));
        one.uid = (uid_t)uid;
        vec_push(&m->at, one);
        if (m == &u->local && one.uid >= u->next)
            u->next = one.uid + 1;
    }
    return 0;
}

static int list_write(const struct user_table *u, const struct user_mapping *m)
{
    CLEANUP(close_fd) int dir = state_open(u);
    CLEANUP(str) struct str text = {0};

    if (dir < 0)
        return dir;
    for (size_t i = 0; i < m->at.len; i++)
        str_addf(&text, "%s %u\n", m->at.at[i].name, (unsigned)m->at.at[i].uid);
    return file_write(dir, m->file, str_text(&text), text.len, true);
}

int users_open(struct state_dir *p, const char *accounts, uid_t first, struct user_table **ret, struct berth_err *err)
{
    struct user_table *u = mem_zalloc(sizeof *u);
    int rc;

    u->state_dir = p;
    u->accounts = accounts ? mem_strdup(accounts) : NULL;
    u->local.file = LOCAL;
    u->cluster.file = CLUSTER;
    u->first = u->next = first ? first : USERS_FIRST;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->moved, NULL);
    rc = list_read(u, &u->local, err);
    if (rc == 0)
        rc = list_read(u, &u->cluster, err);
    if (rc) {
        users_free(u);
        return rc;
    }
    *ret = u;
    return 0;
}

void users_free(struct user_table *u)
{
    if (!u)
        return;
    vec_done(&u->local.at);
    vec_done(&u->cluster.at);
    mem_free(u->accounts);
    pthread_cond_destroy(&u->moved);
    pthread_mutex_destroy(&u->lock);
    mem_free(u);
}

/* ---- accounts of the machine ---- */

/* Checks whether instances may run as the account: not for system accounts and members of root's group. */
static int account_check(const struct passwd *entry, const char *allowed, const gid_t *groups, int len,
                         struct berth_err *err)
{
    char buf[16384];
    struct group group, *found = NULL;

    if (entry->pw_uid == 0)
        return err_set(err, EPERM, "'%s' is root on this node, and instances must not run as root", entry->pw_name);
    if (entry->pw_uid < ACCOUNT_UID_MIN)
        return err_set(err, EPERM, "'%s' is a system account on this node: its UID %u is below %d", entry->pw_name,
                       (unsigned)entry->pw_uid, ACCOUNT_UID_MIN);
    if (entry->pw_gid == 0)
        return err_set(err, EPERM, "the account '%s' has root's group on this node, and instances must not run with it",
                       entry->pw_name);
    CLEANUP(mem) char *large = NULL; /* larger buffer for a group with thousands of members */
    int rc = getgrnam_r(allowed, &group, buf, sizeof buf, &found);
    for (size_t bytes = 4 * sizeof buf; rc == ERANGE && bytes <= GROUP_BYTES_MAX; bytes *= 4) {
        mem_free(large);
        large = mem_alloc(bytes);
        rc = getgrnam_r(allowed, &group, large, bytes, &found);
    }
    for (int i = 0; found && i < len; i++)
        if (groups[i] == found->gr_gid)
            return 0;
    return err_set(err, EPERM,
                   "the account '%s' is not a member of the group '%s', which instances on this node require",
                   entry->pw_name, allowed);
}

/* Looks up the account of this name; -ENOENT: there is none. */
static int account_find(const char *name, const char *allowed, struct instance_user *ret, struct berth_err *err)
{
    char buf[16384];
    struct passwd entry, *found = NULL;
    gid_t groups[USER_GROUPS_MAX];
    int len = USER_GROUPS_MAX, rc = getpwnam_r(name, &entry, buf, sizeof buf, &found);

    if (rc == ERANGE)
        return err_set(err, ERANGE, "the entry of '%s' in the user database is too long", name);
    if (rc && rc != ENOENT && rc != ESRCH) /* a failing user database does not mean that there is no account */
        return err_set(err, rc, "cannot look up '%s' in the user database: %s", name, strerror(rc));
    if (!found)
        return -ENOENT;
    if (getgrouplist(name, entry.pw_gid, groups, &len) < 0)
        return err_set(err, E2BIG, "'%s' is in more than %d groups", name, USER_GROUPS_MAX);
    rc = account_check(&entry, allowed, groups, len, err);
    if (rc)
        return rc;
    *ret = (struct instance_user){.uid = entry.pw_uid, .gid = entry.pw_gid};
    for (int i = 0; i < len; i++)
        if (groups[i] != 0) /* never root's group */
            ret->groups[ret->groups_len++] = groups[i];
    (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    (void)snprintf(ret->home, sizeof ret->home, "%s", entry.pw_dir);
    ret->uids = user_range_read("/etc/subuid", name, ret->uid, ret->uid);
    ret->gids = user_range_read("/etc/subgid", name, ret->uid, ret->gid);
    return 0;
}

/* Tells whether the number is a uid or a gid of the system: owners use one number for both. */
static bool is_system_id(uid_t number)
{
    char buf[16384];
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    int as_user = getpwuid_r(number, &user, buf, sizeof buf, &found_user);
    int as_group = getgrgid_r(number, &group, buf, sizeof buf, &found_group);

    /* ERANGE: the entry exists but is larger than the buffer. */
    return found_user || found_group || as_user == ERANGE || as_group == ERANGE;
}

/* ---- numbers of this node --------------------------------------------------------------------------------------- */

static struct mapped_user *mapped_user_find(const struct user_mapping *m, const char *owner)
{
    for (size_t i = 0; i < m->at.len; i++)
        if (strcmp(m->at.at[i].name, owner) == 0)
            return &m->at.at[i];
    return NULL;
}

/* Returns another owner with this number; NULL: none. */
static const struct mapped_user *number_holder(const struct user_table *u, uid_t uid, const char *but)
{
    const struct user_mapping *const all[] = {&u->local, &u->cluster};

    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < all[k]->at.len; i++)
            if (all[k]->at.at[i].uid == uid && strcmp(all[k]->at.at[i].name, but) != 0)
                return &all[k]->at.at[i];
    return NULL;
}

/* Adds or changes an entry; restores the list if the file cannot be written. */
static int mapped_user_add(struct user_table *u, struct user_mapping *m, const char *owner, uid_t uid,
                           struct berth_err *err)
{
    struct mapped_user one = {.uid = uid}, *known = mapped_user_find(m, owner);
    uid_t before = known ? known->uid : 0;
    int rc;

    if (!known && m->at.len == USERS_MAX)
        return err_set(err, ENOSPC, "more than %d owners have run instances on this node", USERS_MAX);
    memcpy(one.name, owner, strlen(owner));
    if (known)
        known->uid = uid;
    else
        vec_push(&m->at, one);
    rc = list_write(u, m);
    if (rc == 0)
        return 0;
    if (known) /* vectors: known is NULL if an entry was pushed */
        known->uid = before;
    else
        m->at.len--;
    return err_set(err, -rc, "cannot store the UID of '%s' in '%s/%s': %s", owner, state_dir_path(u->state_dir),
                   m->file, strerror(-rc));
}

static int number_assign(struct user_table *u, const char *owner, uid_t *ret, struct berth_err *err)
{
    struct mapped_user *known = mapped_user_find(&u->local, owner);
    int rc = 0;

    if (!known) {
        while (is_system_id(u->next) || number_holder(u, u->next, owner))
            u->next++;
        rc = mapped_user_add(u, &u->local, owner, u->next, err);
        known = rc == 0 ? mapped_user_find(&u->local, owner) : NULL;
        u->next += rc == 0;
    }
    if (known)
        *ret = known->uid;
    return rc;
}

/* Returns the range of further numbers for a uid; empty if another owner with the same slot was assigned earlier, or if
 * a uid of another owner is within the range. */
static struct user_range range_find(const struct user_table *u, const char *owner, uid_t own)
{
    const struct user_mapping *const all[] = {&u->local, &u->cluster};
    struct user_range range = user_range_of_slot(user_range_slot(own));
    bool before = true;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < all[k]->at.len; i++) {
            const struct mapped_user *m = &all[k]->at.at[i];
            bool self = strcmp(m->name, owner) == 0;

            before = before && !(self && m->uid == own);
            if ((before && !self && user_range_slot(m->uid) == user_range_slot(own)) ||
                (m->uid >= range.first && m->uid - range.first < range.count))
                return (struct user_range){0};
        }
    return range;
}

/* ---- numbers of the cluster ------------------------------------------------------------------------------------- */

/* Waits while the owner's files are being moved; with `to_move`, also while any other owner's are. */
static void wait_for_move(struct user_table *u, const char *owner, bool to_move)
{
    while (strcmp(u->moving, owner) == 0 || (to_move && u->moving[0]))
        pthread_cond_wait(&u->moved, &u->lock);
}

/* Moves the files first, then records the number: after a crash in between the old number is still recorded, and the
 * move is repeated. */
static int number_move(struct user_table *u, const char *owner, uid_t from, uid_t to, struct berth_err *err)
{
    const struct user_numbers before = {from, range_find(u, owner, from)}, after = {to, range_find(u, owner, to)};
    int rc;

    memcpy(u->moving, owner, strlen(owner) + 1);
    pthread_mutex_unlock(&u->lock);
    rc = user_move(u->state_dir, owner, &before, &after, err);
    pthread_mutex_lock(&u->lock);
    u->moving[0] = '\0';
    pthread_cond_broadcast(&u->moved);
    return rc ? rc : mapped_user_add(u, &u->cluster, owner, to, err);
}

/* Renames the home of an earlier user of the same name, so that the new user does not get it. */
static int home_set_aside(const struct user_table *u, const char *owner, uid_t before, struct berth_err *err)
{
    char from[STATE_PATH_MAX], to[STATE_PATH_MAX];

    (void)snprintf(from, sizeof from, "%s/homes/%s", state_dir_path(u->state_dir), owner);
    (void)snprintf(to, sizeof to, "%s/homes/.%s.%u", state_dir_path(u->state_dir), owner, (unsigned)before);
    if (rename(from, to) && errno != ENOENT)
        return err_set(err, errno, "cannot move the home of the previous user '%s': %s", owner, strerror(errno));
    return 0;
}

/* Checks that the number belongs to no other owner, account or group of this machine. */
static int number_check(const struct user_table *u, const struct user_query *ask, struct berth_err *err)
{
    const struct mapped_user *other = number_holder(u, ask->uid, ask->owner);

    if (other)
        return err_set(
            err, EEXIST,
            "the cluster's UID %u of '%s' belongs to '%s' on this node; an administrator can choose other UIDs with "
            "the setting uid_first, or --uid-first of the agent",
            (unsigned)ask->uid, ask->owner, other->name);
    if (ask->uid == u->first - 1 || is_system_id(ask->uid)) /* uid_first - 1 may be the net sandbox's */
        return err_set(
            err, EEXIST,
            "the cluster's UID %u of '%s' belongs to an account or a group of this node; an administrator can choose "
            "other UIDs with the setting uid_first",
            (unsigned)ask->uid, ask->owner);
    return 0;
}

/* Chooses the number for an instance that is about to be started. */
static int number_launch(struct user_table *u, const struct user_query *ask, struct instance_user *ret,
                         struct berth_err *err)
{
    struct mapped_user *cluster = mapped_user_find(&u->cluster, ask->owner),
                       *local = mapped_user_find(&u->local, ask->owner);
    int rc;

    if (cluster && cluster->uid == ask->uid) {
        ret->uid = ask->uid;
        return 0;
    }
    if (cluster && cluster->uid > ask->uid)
        return err_set(err, ESTALE, "'%s' with UID %u is an earlier user of this name", ask->owner, (unsigned)ask->uid);
    rc = number_check(u, ask, err);
    if (rc)
        return rc;
    if (!cluster && local &&
        (!ask->alone || local->in_use || user_has_processes(local->uid, range_find(u, ask->owner, local->uid)))) {
        local->in_use = true;
        ret->uid = local->uid;
        ret->old_number = true;
        return 0;
    }
    ret->uid = ask->uid;
    if (!cluster && local)
        return number_move(u, ask->owner, local->uid, ask->uid, err);
    rc = cluster ? home_set_aside(u, ask->owner, cluster->uid, err) : 0;
    return rc ? rc : mapped_user_add(u, &u->cluster, ask->owner, ask->uid, err);
}

static int number_find(struct user_table *u, const struct user_query *ask, struct instance_user *ret,
                       struct berth_err *err)
{
    const struct mapped_user *cluster, *local;

    wait_for_move(u, ask->owner, ask->uid && ask->launch && ask->alone);
    cluster = mapped_user_find(&u->cluster, ask->owner);
    local = mapped_user_find(&u->local, ask->owner);
    if (ask->uid && ask->launch)
        return number_launch(u, ask, ret, err);
    if (!ask->uid && !cluster)
        return number_assign(u, ask->owner, &ret->uid, err);
    /* For a running instance: it was started with the earlier number or with this one. */
    ret->uid = !ask->uid ? cluster->uid : !cluster && local ? local->uid : ask->uid;
    return 0;
}

void users_release(struct user_table *u, const char *owner)
{
    pthread_mutex_lock(&u->lock);
    struct mapped_user *local = mapped_user_find(&u->local, owner);
    if (local)
        local->in_use = false;
    pthread_mutex_unlock(&u->lock);
}

/* Returns an account's range, or an empty one if the range overlaps numbers that this agent has assigned or may assign,
 * including the net sandbox's. */
static struct user_range range_without_overlap(const struct user_table *u, struct user_range range)
{
    const struct user_mapping *const all[] = {&u->local, &u->cluster};
    bool apart = (uint64_t)range.first + range.count < u->first || range.first >= (uint64_t)u->first + USERS_MAX;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; apart && i < all[k]->at.len; i++)
            apart = all[k]->at.at[i].uid < range.first || all[k]->at.at[i].uid - range.first >= range.count;
    return apart ? range : (struct user_range){0};
}

/* Creates the home. Changes only the directory itself, because it may contain links of the owner. */
static int home_make(const struct instance_user *user, struct berth_err *err)
{
    CLEANUP(close_fd) int fd = -1;

    if (mkdir(user->home, 0700) && errno != EEXIST)
        return err_set(err, errno, "cannot create the home '%s': %s", user->home, strerror(errno));
    fd = open(user->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, user->uid, user->gid)))
        return err_set(err, errno, "cannot change the owner of the home '%s': %s", user->home, strerror(errno));
    return 0;
}

static int account_resolve(struct user_table *u, const char *owner, struct instance_user *ret, struct berth_err *err)
{
    struct instance_user account = {0};
    int rc = account_find(owner, u->accounts, &account, err);

    if (rc)
        return rc;
    pthread_mutex_lock(&u->lock);
    account.uids = range_without_overlap(u, account.uids);
    account.gids = range_without_overlap(u, account.gids);
    pthread_mutex_unlock(&u->lock);
    *ret = account;
    return 0;
}

int users_resolve(struct user_table *u, const struct user_query *ask, struct instance_user *ret, struct berth_err *err)
{
    struct instance_user found = {0};
    const char *owner = ask->owner;
    int rc;

    if (strlen(owner) >= sizeof found.name || strpbrk(owner, " \n") ||
        state_dir_entry_path(u->state_dir, "homes", owner, found.home))
        return err_set(err, EINVAL, "'%s' is not a valid name of an owner", owner);
    if (u->accounts && geteuid() == 0 && !ask->no_account) {
        rc = account_resolve(u, owner, ret, err);
        if (rc != -ENOENT)
            return rc;
    }
    memcpy(found.name, owner, strlen(owner));
    found.uid = geteuid();
    found.gid = getegid();
    if (geteuid() == 0) {
        pthread_mutex_lock(&u->lock);
        rc = number_find(u, ask, &found, err);
        if (rc == 0)
            found.uids = found.gids = range_find(u, owner, found.uid);
        pthread_mutex_unlock(&u->lock);
        if (rc)
            return rc;
        found.gid = (gid_t)found.uid;
        found.given = true;
    }
    rc = ask->launch ? home_make(&found, err) : 0;
    if (rc)
        return rc;
    *ret = found;
    return 0;
}

int users_find(struct user_table *u, const char *owner, struct instance_user *ret, struct berth_err *err)
{
    return users_resolve(u, &(struct user_query){.owner = owner, .launch = true}, ret, err);
}

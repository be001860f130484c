/* net_sandbox_drop.c - drops the privileges of the net sandbox before it reads any untrusted input. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/net/net_sandbox.h"
#include "base/mem.h"
#include "machine/launch/state_file.h"
#include "machine/launch/syscalls.h"

/* capset(2) takes one header and two data records for 64 capabilities. */
static int capabilities_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(SYS_capset, &head, none);
}

/* Needs root. Clears the capability bounding set, so that exec could not regain capabilities. */
static void bounds_drop(void)
{
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

/* The agent may be protected from the OOM killer; the sandbox is not, because remote data can make its memory grow. */
static void oom_score_reset(void)
{
    CLEANUP(close_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)fd_write(fd, "0", 1);
}

static int user_become(const struct net_sandbox_user *user, struct berth_err *err)
{
    if (geteuid() == 0) {
        oom_score_reset();
        bounds_drop();
        if (setgroups(0, NULL) || setresgid(user->gid, user->gid, user->gid) ||
            setresuid(user->uid, user->uid, user->uid))
            return err_set(err, errno, "the net sandbox cannot become user %u: %s; choose another with --network-user",
                           (unsigned)user->uid, strerror(errno));
    }
    if (geteuid() == 0 || getuid() == 0 || geteuid() != user->uid || getegid() != user->gid)
        return err_set(err, EPERM, "the net sandbox has not become user %u", (unsigned)user->uid);
    return 0;
}

int net_sandbox_drop(const struct net_sandbox_user *user, struct berth_err *err)
{
    const struct rlimit no_core = {0};
    int rc = user_become(user, err);
    if (rc < 0)
        return rc;
    if (chdir("/") < 0)
        return err_set(err, errno, "the net sandbox cannot enter /: %s", strerror(errno));
    (void)setrlimit(RLIMIT_CORE, &no_core);
    /* Not dumpable: other processes with the same uid cannot read its memory, which holds the node's key. */
    if (capabilities_drop() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        return err_set(err, errno, "the net sandbox cannot drop its privileges: %s", strerror(errno));
    return syscalls_narrow_network(err);
}

/* tool_user.c - drops privileges before a system program is executed.
 *
 * The child's code runs after fork in a multithreaded program: only async-signal-safe functions.
 */
#include "machine/image/tool_user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/syscalls.h"

/* ---- parent ----------------------------------------------------------------------------------------------------- */

/* Variables that are passed on: search path, proxies, certificates, language. Other variables of the agent are not. */
static const char *const inherited_variables[] = {
    "PATH",          "LANG",         "LC_ALL",         "TZ",
    "http_proxy",    "https_proxy",  "no_proxy",       "all_proxy",
    "HTTP_PROXY",    "HTTPS_PROXY",  "NO_PROXY",       "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "CONTAINERS_REGISTRIES_CONF",
};
static const char *const home_variables[] = {"HOME", "TMPDIR", "XDG_RUNTIME_DIR"};
enum {
    HANDED_ON = sizeof inherited_variables / sizeof *inherited_variables,
    AT_HOME = sizeof home_variables / sizeof *home_variables
};

static char *setting(const char *name, const char *value)
{
    struct str text = {0};
    str_addf(&text, "%s=%s", name, value);
    return str_take(&text);
}

char **tool_user_env(const struct tool_user *user)
{
    char **env = mem_zalloc((HANDED_ON + AT_HOME + 1) * sizeof *env);
    size_t len = 0;
    for (size_t i = 0; i < HANDED_ON; i++) {
        const char *value = getenv(inherited_variables[i]);
        if (value)
            env[len++] = setting(inherited_variables[i], value);
    }
    for (size_t i = 0; i < AT_HOME; i++)
        env[len++] = setting(home_variables[i], user->home);
    return env;
}

void tool_env_cleanup(char ***env)
{
    for (char **at = *env; at && *at; at++)
        mem_free(*at);
    mem_free(*env);
}

pid_t tool_user_fork(void)
{
    long pid = syscall(SYS_clone, (unsigned long)(CLONE_NEWPID | SIGCHLD), NULL, NULL, NULL, NULL);
    /* Without the permission (in a container), uses fork: the process group is killed, and later changes of remaining
     * processes are not trusted (image_fetch.c). */
    return pid < 0 && errno != EAGAIN && errno != ENOMEM ? fork() : (pid_t)pid;
}

/* ---- child ------------------------------------------------------------------------------------------------------ */

static void stderr_write(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

/* The agent may be protected from the OOM killer; programs that process remote data are not. */
static void oom_score_reset(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : write(fd, "0", 1);
    (void)n;
}

static int privileges_drop(const struct tool_user *user)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    /* By raw system calls: the C library would signal the other threads, which do not exist after fork. */
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0 ||
        syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0 || syscall(SYS_capset, &head, none) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return getuid() == user->uid && geteuid() == user->uid && getegid() == user->gid ? 0 : -1;
}

int tool_user_become(const struct tool_user *user)
{
    const struct rlimit no_core = {0};
    struct pollfd parent = {.fd = STDOUT_FILENO};
    if (user->given >= 0 &&
        (user->given == TOOL_GIVEN_FD ? fcntl(user->given, F_SETFD, 0) : dup2(user->given, TOOL_GIVEN_FD)) < 0)
        return -1;
    oom_score_reset();
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (privileges_drop(user) < 0) {
        stderr_write("cannot switch to the user of --network-user\n");
        return -1;
    }
    if (chdir(user->home) < 0) { /* by path, as the program will resolve it */
        stderr_write("the user of --network-user cannot access ");
        stderr_write(user->home);
        stderr_write(": a parent folder is not accessible to others; allow it with chmod o+x\n");
        return -1;
    }
    /* The change of uid has cleared the parent-death signal; the parent may have died meanwhile. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&parent, 1, 0) < 0 || parent.revents & POLLERR)
        return -1;
    if (syscalls_narrow(NULL) < 0) {
        stderr_write("cannot restrict the system calls of the program (seccomp)\n");
        return -1;
    }
    return 0;
}

/* exec.c - runs a program beside a running instance: spawns `berth-shim exec`, which joins the instance and executes
 * the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/launch.h"
#include "machine/launch/launch_spawn.h"
#include "machine/launch/launch_spec.h"
#include "machine/launch/state_file.h"

/* Both ends of the program's standard streams. */
struct stdio_pipes {
    int in, out, err;    /* the caller's */
    int in_, out_, err_; /* the program's */
};

static void stdio_pipes_cleanup(struct stdio_pipes *e)
{
    if (e->out != e->in)
        close_fd_cleanup(&e->out);
    close_fd_cleanup(&e->in);
    close_fd_cleanup(&e->err);
    if (e->out_ != e->in_)
        close_fd_cleanup(&e->out_);
    if (e->err_ != e->in_)
        close_fd_cleanup(&e->err_);
    close_fd_cleanup(&e->in_);
}

static int terminal_make(struct stdio_pipes *e, unsigned rows, unsigned columns)
{
    struct winsize size = {.ws_row = (unsigned short)(rows ? rows : 24),
                           .ws_col = (unsigned short)(columns ? columns : 80)};

    e->in = e->out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (e->in < 0 || unlockpt(e->in) || ioctl(e->in, TIOCSWINSZ, &size))
        return -errno;
    e->in_ = e->out_ = e->err_ = ioctl(e->in, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return e->in_ < 0 ? -errno : 0;
}

static int pipes_make(struct stdio_pipes *e)
{
    int fds[3][2] =
        {
            {-1, -1},
            {-1, -1},
            {-1, -1}
    },
        rc = 0;

    for (int i = 0; rc == 0 && i < 3; i++)
        rc = pipe2(fds[i], O_CLOEXEC) ? -errno : 0;
    *e = (struct stdio_pipes){
        .in = fds[0][1], .out = fds[1][0], .err = fds[2][0], .in_ = fds[0][0], .out_ = fds[1][1], .err_ = fds[2][1]};
    return rc;
}

static int stdio_pipes_make(enum exec_stdio kind, unsigned rows, unsigned columns, struct stdio_pipes *e,
                            struct berth_err *err)
{
    bool terminal = kind == EXEC_TERMINAL;
    int rc = terminal ? terminal_make(e, rows, columns) : kind == EXEC_PIPES ? pipes_make(e) : 0;

    return rc ? err_set(err, -rc, "cannot create a %s: %s", terminal ? "terminal" : "pipe", strerror(-rc)) : 0;
}

static void json_cleanup(json_t **j)
{
    json_decref(*j);
}

/* Creates a memory file with these bytes, positioned at its start. */
static int memory_make(const char *bytes, size_t len)
{
    CLEANUP(close_fd) int fd = memfd_create("berth-exec", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : fd_write(fd, bytes, len);

    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    return rc ? rc : take_fd(&fd);
}

/* Writes the description of the program for `berth-shim exec`. */
static int program_spec_make(const char *const *argv, const char *const *env, struct berth_err *err)
{
    CLEANUP(str) struct str text = {0};
    const struct launch program_spec = {.argv = argv, .env = env};
    int rc = spec_write(&program_spec, "/", "/", &text, err);

    if (rc)
        return rc;
    rc = memory_make(text.at, text.len);
    return rc < 0 ? err_set(err, -rc, "cannot write the command: %s", strerror(-rc)) : rc;
}

/* Adds or replaces a variable, because programs differ in how they treat duplicate names. */
static int environment_add(json_t *env, const char *one)
{
    size_t len = strcspn(one, "="), i;
    json_t *old, *text = json_string(one);

    if (!text)
        return -EINVAL;
    json_array_foreach(env, i, old) if (strncmp(json_string_value(old), one, len) == 0 &&
                                        json_string_value(old)[len] == '=') return json_array_set_new(env, i, text)
        ? -ENOMEM
        : 0;
    return json_array_append_new(env, text) ? -ENOMEM : 0;
}

/* Writes the process description for an OCI runtime: the process of the bundle (user, working directory, capabilities,
 * environment) with other arguments. Not passed by command-line options, because runtimes differ in what they then
 * leave out. */
static int process_make(const char *bundle, const char *const *argv, const char *const *env, bool terminal,
                        struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    CLEANUP(json) json_t *config = NULL;
    CLEANUP(mem) char *text = NULL;
    json_t *process, *args, *all;
    int rc = 0;

    str_addf(&path, "%s/config.json", bundle);
    config = json_load_file(path.at, JSON_REJECT_DUPLICATES, NULL);
    process = json_object_get(config, "process");
    if (!json_is_object(process))
        return err_set(err, EIO, "cannot read '%s'", path.at);
    args = json_array();
    for (; rc == 0 && *argv; argv++)
        rc = json_array_append_new(args, json_string(*argv)) ? -EINVAL : 0;
    json_object_set_new(process, "args", args);
    json_object_set_new(process, "terminal", json_boolean(terminal));
    all = json_object_get(process, "env");
    if (!json_is_array(all)) {
        all = json_array();
        json_object_set_new(process, "env", all);
    }
    for (; rc == 0 && env && *env; env++)
        rc = environment_add(all, *env);
    if (rc)
        return err_set(err, EINVAL, "the command for a container must be UTF-8");
    text = json_dumps(process, JSON_COMPACT);
    rc = text ? memory_make(text, strlen(text)) : -ENOMEM;
    return rc < 0 ? err_set(err, -rc, "cannot write the command: %s", strerror(-rc)) : rc;
}

static int helper_run(const char *shim, const char *dir, int program_spec, int process, const struct stdio_pipes *e,
                      struct exec_process *ret, struct berth_err *err)
{
    const char *const argv[] = {"berth-shim", "exec", dir, NULL}, *const env[] = {NULL};
    CLEANUP(close_fd) int ours = -1;
    CLEANUP(close_fd) int theirs = -1;
    CLEANUP(close_fd) int pidfd = -1;
    int pair[2], rc;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_set(err, errno, "cannot create a socket: %s", strerror(errno));
    ours = pair[0];
    theirs = pair[1];
    rc = spawn_with(shim, argv, env, (const int[]){e->in_, e->out_, e->err_, theirs, program_spec, process}, 6, &pid);
    if (rc)
        return err_set(err, -rc, "cannot run the shim '%s': %s", shim, strerror(-rc));
    close(take_fd(&theirs));
    pidfd = pidfd_open(pid, 0); /* the pid is not reused before this process reaps its child */
    if (pidfd < 0) {
        rc = err_set(err, errno, "cannot watch process %d: %s", (int)pid, strerror(errno));
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return rc;
    }
    ret->pid = pid;
    ret->pidfd = take_fd(&pidfd);
    ret->word = take_fd(&ours);
    return 0;
}

/* Returns the instance directory and the spec of its shim. `berth-shim exec` checks whether the instance runs. */
static int instance_find(const struct state_dir *p, uint64_t id, char ret_dir[static STATE_PATH_MAX],
                         struct launch_spec *ret, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = -1;
    char *text = NULL;
    size_t len = 0;
    int rc = instance_dir_path(p, id, "spec", ret_dir);

    if (rc == 0) {
        *strrchr(ret_dir, '/') = 0;
        dir = open(ret_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = dir < 0 ? -errno : file_read(dir, "spec", &text, &len);
    }
    return rc ? err_set(err, ESRCH, "instance %" PRIu64 " is not running on this node", id)
              : spec_read(text, len, ret, err);
}

int exec_process_start(const struct state_dir *p, uint64_t id, const char *const *argv, const char *const *env,
                       enum exec_stdio kind, unsigned rows, unsigned columns, struct exec_process *ret,
                       struct berth_err *err)
{
    CLEANUP(stdio_pipes) struct stdio_pipes e = {-1, -1, -1, -1, -1, -1};
    CLEANUP(close_fd) int program_spec = -1;
    CLEANUP(close_fd) int process = -1;
    struct exec_process beside = {.err = -1, .word = -1};
    struct launch_spec spec = {0};
    char dir[STATE_PATH_MAX];
    int rc = instance_find(p, id, dir, &spec, err);

    if (rc)
        return rc;
    rc = stdio_pipes_make(kind, rows, columns, &e, err);
    if (rc == 0) {
        program_spec = program_spec_make(argv, env, err);
        rc = program_spec < 0 ? program_spec : 0;
    }
    if (rc == 0 && spec.launch.runtime) {
        process = process_make(spec.launch.bundle, argv, env, kind == EXEC_TERMINAL, err);
        rc = process < 0 ? process : 0;
    }
    if (rc == 0)
        rc = helper_run(spec.launch.shim, dir, program_spec, process, &e, &beside, err);
    spec_done(&spec);
    if (rc)
        return rc;
    beside.in = e.in;
    beside.out = e.out;
    beside.err = e.err;
    e.in = e.out = e.err = -1;
    *ret = beside;
    return 0;
}

/* On success `berth-shim exec` becomes the program, which closes the socket without a message. */
int exec_process_error(const struct exec_process *b, struct berth_err *err)
{
    struct shim_message word;

    if (recv(b->word, &word, sizeof word, MSG_DONTWAIT) != sizeof word)
        return 0;
    word.text[sizeof word.text - 1] = 0;
    return err_set(err, word.code, "%s", word.text);
}

void exec_process_close(struct exec_process *b)
{
    if (b->in != b->out)
        close_fd_cleanup(&b->in);
    close_fd_cleanup(&b->out);
    close_fd_cleanup(&b->err);
    close_fd_cleanup(&b->word);
    close_fd_cleanup(&b->pidfd);
    b->in = b->out = b->err = b->word = b->pidfd = -1;
}

void exec_process_resize(const struct exec_process *b, unsigned rows, unsigned columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

    (void)ioctl(b->in, TIOCSWINSZ, &size); /* fails harmlessly without a terminal */
}

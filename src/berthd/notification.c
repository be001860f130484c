#include "berthd/notification.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/address.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/client/client.h"
#include "net/client/mail.h"

#define TIMEOUT_NS (INT64_C(5) * 1000000000)
enum { TIMEOUT_MS = 5000, OK_MIN = 200, OK_MAX = 299, ANSWER_BYTES_MAX = 65536 };

/* ---- HTTP ------------------------------------------------------------------------------------------------------- */

static bool address_allowed(void *ctx, const struct sockaddr *address)
{
    const struct notification_delivery *p = ctx;
    return p->host_named || address_is_public(address) || notification_address_allowed(p->allow, address);
}

/* Posts to the URL. -EBADMSG: the answer is not a success. */
static int post_url(const struct notification_delivery *p, struct berth_err *err)
{
    const char *host = strstr(p->url, "://");
    host = host ? host + 3 : p->url;
    size_t path = (size_t)(host - p->url) + strcspn(host, "/?");
    CLEANUP(mem) char *server = mem_strdup(p->url);
    CLEANUP(str) struct str target = {0}, signature = {0};
    struct client *client = NULL;
    struct client_answer answer = {0};
    server[path] = 0;
    str_addf(&target, "%s%s", p->url[path] == '/' ? "" : "/", p->url + path);
    str_addf(&signature, "X-Berth-Signature: sha256=%s", p->signature ? p->signature : "");
    const char *const headers[] = {p->signature ? str_text(&signature) : NULL, NULL};
    struct client_config config = {.url = server,
                                   .timeout_ns = TIMEOUT_NS,
                                   .agent = "berthd",
                                   .answer_bytes_max = ANSWER_BYTES_MAX,
                                   .address_allowed = address_allowed,
                                   .address_ctx = (void *)p};
    struct client_request request = {
        .method = "POST", .path = str_text(&target), .headers = headers, .body = p->body, .body_len = strlen(p->body)};
    int rc = client_new(&config, &client, err);
    if (rc == 0)
        rc = client_do(client, &request, &answer, err);
    if (rc == 0 && (answer.status < OK_MIN || answer.status > OK_MAX))
        rc = err_set(err, EBADMSG, "status %d", answer.status);
    client_answer_done(&answer);
    client_free(client);
    return rc;
}

/* ---- mail program ----------------------------------------------------------------------------------------------- */

static int feed(int fd, const char *text)
{
    for (size_t len = strlen(text); len;) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (poll(&ready, 1, TIMEOUT_MS) <= 0)
            return -ETIMEDOUT;
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* Returns the program's exit code; kills it after a timeout and returns -ETIMEDOUT. */
static int wait_for(pid_t pid)
{
    int status = 0, pidfd = pidfd_open(pid, 0);
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    bool late = pidfd < 0 || poll(&ended, 1, TIMEOUT_MS) <= 0;
    if (late)
        (void)kill(pid, SIGKILL);
    if (pidfd >= 0)
        (void)close(pidfd);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return late ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int spawn(const struct notification_delivery *p, int in, pid_t *ret)
{
    char *const argv[] = {(char *)p->mail_command, (char *)"-i", (char *)"-f", (char *)p->from, (char *)"--",
                          (char *)p->mail,         NULL};
    char *const env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    (void)sigemptyset(&none);
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &usual);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(ret, p->mail_command, &files, &attributes, argv, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    return -rc;
}

static int post_command(const struct notification_delivery *p, struct berth_err *err)
{
    int ends[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    int rc = spawn(p, ends[0], &pid);
    (void)close(ends[0]);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    CLEANUP(str) struct str text = {0};
    for (const char *at = p->body; *at; at++) /* local programs expect lines without carriage returns */
        if (*at != '\r')
            str_add_char(&text, *at);
    int fed = rc == 0 ? feed(ends[1], str_text(&text)) : 0;
    (void)close(ends[1]);
    if (rc < 0)
        return err_set(err, -rc, "%s cannot be run: %s", p->mail_command, strerror(-rc));
    rc = wait_for(pid);
    if (rc == 0 && fed == 0)
        return 0;
    if (rc == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT, "%s took too long", p->mail_command);
    return err_set(err, EIO, "%s failed with %d", p->mail_command, rc);
}

/* ---- any notification ------------------------------------------------------------------------------------------- */

static int send_any(const struct notification_delivery *p, struct berth_err *err)
{
    if (p->url)
        return post_url(p, err);
    if (p->mail_command)
        return post_command(p, err);
    struct mail mail = {
        .server = p->smtp_url, .from = p->from, .to = p->mail, .text = p->body, .timeout_ns = TIMEOUT_NS};
    return mail_send(&mail, err);
}

int notification_send(const struct notification_delivery *p, struct berth_err *detail, struct berth_err *err)
{
    int rc = send_any(p, detail);
    if (rc == 0)
        return 0;
    /* A forbidden address is retried like an unreachable one, so that the number of tries reveals nothing, either. */
    if (rc == -EBADMSG)
        return err_set(err, EIO, "%s", detail->text);
    return err_set(err, rc == -EINVAL ? EINVAL : EIO, "%s",
                   p->url ? "the URL cannot be reached, or posting to it is not allowed"
                          : "the mail server rejected the "
                            "message");
}

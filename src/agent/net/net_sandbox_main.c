/* net_sandbox_main.c - the net sandbox process: connects to the daemon, speaks TLS and HTTP, and forwards answers to
 * the root process.
 *
 * The net sandbox makes no decisions. Its writes to the root process block, so no data accumulates in it. It exits when
 * the root process closes the socket.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/instance/footprint.h"
#include "agent/net/net_frame.h"
#include "agent/net/net_sandbox.h"
#include "base/mem.h"
#include "base/vec.h"
#include "net/client/client.h"
#include "net/tls/tls.h"

enum { ROOT_FD = 3, READ_BYTES = 65536, EXIT_USAGE = 2 };
#define AGENT_NAME "berth-agent/" BERTH_VERSION

struct net_process;

struct net_call {
    struct net_process *net;
    uint32_t id;
    bool stream;
    struct async_call *call;
};

struct net_process {
    struct loop *loop;
    struct async *async; /* NULL: no valid certificate yet */
    struct str in;
    VEC(struct net_call *) calls;
    bool trimmed;
};

/* ---- sending to the root process -------------------------------------------------------------------------------- */

static void to_root(struct str *frame)
{
    for (size_t sent = 0; sent < frame->len;) {
        ssize_t n = send(ROOT_FD, frame->at + sent, frame->len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            _exit(EXIT_SUCCESS);
        sent += n > 0 ? (size_t)n : 0;
    }
}

/* Sends a frame with a number and a text: NET_FRAME_CERTIFICATE or NET_FRAME_RESULT. */
static void send_result_frame(enum net_frame_kind kind, uint32_t call, int64_t number, const char *text)
{
    CLEANUP(str) struct str frame = {0};
    size_t began = net_frame_begin(&frame, kind, call), len = strlen(text);
    net_frame_add_number(&frame, number);
    str_add_bytes(&frame, text, len < NET_FRAME_TEXT_BYTES_MAX ? len : NET_FRAME_TEXT_BYTES_MAX);
    net_frame_end(&frame, began);
    to_root(&frame);
}

static void send_piece_frames(uint32_t call, const char *at, size_t len)
{
    CLEANUP(str) struct str frame = {0};
    for (size_t done = 0; done < len;) {
        size_t piece = len - done < NET_FRAME_DATA_BYTES_MAX ? len - done : NET_FRAME_DATA_BYTES_MAX;
        str_clear(&frame);
        size_t began = net_frame_begin(&frame, NET_FRAME_DATA, call);
        str_add_bytes(&frame, at + done, piece);
        net_frame_end(&frame, began);
        to_root(&frame);
        done += piece;
    }
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void call_drop(struct net_call *c)
{
    struct net_process *net = c->net;
    for (size_t i = 0; i < net->calls.len; i++)
        if (net->calls.at[i] == c) {
            net->calls.at[i] = net->calls.at[--net->calls.len];
            break;
        }
    mem_free(c);
}

static void took_piece(void *ctx, const char *at, size_t len)
{
    const struct net_call *c = ctx;
    send_piece_frames(c->id, at, len);
}

static void on_answer(void *ctx, const struct async_answer *answer)
{
    struct net_call *c = ctx;
    struct net_process *net = c->net;
    if (!c->stream)
        send_piece_frames(c->id, answer->body, answer->len);
    send_result_frame(NET_FRAME_RESULT, c->id, answer->status, answer->text);
    call_drop(c);
    if (!net->trimmed && answer->status)
        footprint_trim();
    net->trimmed = net->trimmed || answer->status;
}

static bool start(struct net_process *net, struct net_frame *f)
{
    struct net_frame_request q;
    uint32_t id = f->call;
    if (!net_frame_take_request(f, &q))
        return false;
    if (!net->async) {
        send_result_frame(NET_FRAME_RESULT, id, 0, "no certificate for the daemon");
        return true;
    }
    struct net_call *c = mem_zalloc(sizeof *c);
    *c = (struct net_call){.net = net, .id = id, .stream = q.stream != 0};
    vec_push(&net->calls, c);
    c->call = async_start(net->async, &(struct async_request){.method = q.method,
                                                              .url = q.url,
                                                              .content_type = *q.type ? q.type : NULL,
                                                              .body = q.body_len ? q.body : NULL,
                                                              .body_len = q.body_len,
                                                              .timeout_ns = q.timeout_ns,
                                                              .piece = q.stream ? took_piece : NULL,
                                                              .done = on_answer,
                                                              .ctx = c});
    return true;
}

static void cancel(struct net_process *net, uint32_t id)
{
    for (size_t i = 0; i < net->calls.len; i++)
        if (net->calls.at[i]->id == id) {
            async_cancel(net->calls.at[i]->call);
            call_drop(net->calls.at[i]);
            return;
        }
}

/* ---- certificates ----------------------------------------------------------------------------------------------- */

static bool identify(struct net_process *net, struct net_frame *f)
{
    struct tls_cert_info info;
    struct berth_err err = {0};
    const char *pem, *ca;
    if (!net_frame_take_text(f, &pem) || !net_frame_take_text(f, &ca))
        return false;
    const struct async_config config = {
        .ca_pem = *ca ? ca : NULL, .cert_pem = pem, .key_pem = pem, .agent = AGENT_NAME};
    int rc = tls_cert_info(pem, &info, &err);
    if (rc == 0)
        rc = net->async ? async_pems(net->async, &config, &err) : async_new(net->loop, &config, &net->async, &err);
    send_result_frame(NET_FRAME_CERTIFICATE, f->call, rc < 0 ? 0 : info.not_after_ns, rc < 0 ? err.text : "");
    return true;
}

/* ---- a join ----------------------------------------------------------------------------------------------------- */

static bool handle_request_frame(struct net_frame *f)
{
    struct client_answer answer = {0};
    struct berth_err err = {0};
    struct client *client = NULL;
    const char *url, *pin;
    if (!net_frame_take_text(f, &url) || !net_frame_take_text(f, &pin))
        return false;
    const struct client_config config = {.url = url, .pin = pin, .agent = AGENT_NAME};
    const struct client_request request = {.method = "POST", .path = "/v1/join", .body = f->at, .body_len = f->len};
    int rc = client_new(&config, &client, &err);
    if (rc == 0)
        rc = client_do(client, &request, &answer, &err);
    send_piece_frames(f->call, str_text(&answer.body), answer.body.len);
    send_result_frame(NET_FRAME_RESULT, f->call, rc < 0 ? 0 : answer.status, rc < 0 ? err.text : "");
    client_answer_done(&answer);
    client_free(client);
    return true;
}

/* ---- process lifetime ------------------------------------------------------------------------------------------- */

static bool take_frame(struct net_process *net, struct net_frame *f)
{
    switch (f->kind) {
    case NET_FRAME_IDENTITY: return identify(net, f);
    case NET_FRAME_REQUEST: return start(net, f);
    case NET_FRAME_JOIN: return handle_request_frame(f);
    default: cancel(net, f->call); return true;
    }
}

static void on_parent_frame(void *ctx, uint32_t events)
{
    struct net_process *net = ctx;
    struct net_frame frame;
    char room[READ_BYTES];
    size_t done = 0;
    ssize_t n = recv(ROOT_FD, room, sizeof room, MSG_DONTWAIT);
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        _exit(EXIT_SUCCESS); /* the kernel releases all resources */
    str_add_bytes(&net->in, room, (size_t)n);
    while ((n = net_frame_read(net->in.at + done, net->in.len - done, false, &frame)) > 0) {
        if (!take_frame(net, &frame))
            _exit(EXIT_FAILURE);
        done += (size_t)n;
    }
    if (n < 0)
        _exit(EXIT_FAILURE);
    memmove(net->in.at, net->in.at + done, net->in.len - done);
    net->in.len -= done;
    if (!net->in.len && net->in.cap > READ_BYTES)
        str_done(&net->in);
}

static bool is_parent_alive(void)
{
    int domain = 0;
    socklen_t len = sizeof domain;
    return getsockopt(ROOT_FD, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

int net_sandbox_main(int argc, char **argv)
{
    struct berth_err err = {0};
    struct net_process net = {0};
    struct loop_source *source = NULL;
    int64_t uid = -1, gid = -1;
    if (argc != 4 || !str_parse_i64(argv[2], &uid) || !str_parse_i64(argv[3], &gid) || uid < 0 || gid < 0 ||
        !is_parent_alive()) {
        (void)fprintf(stderr, "berth-agent: 'network' is internal; the agent starts it as its net sandbox\n");
        return EXIT_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "berth-agent-net"); /* started as /proc/self/exe, so its name would be "exe" */
    int rc = net_sandbox_drop(&(struct net_sandbox_user){(uid_t)uid, (gid_t)gid}, &err);
    if (rc == 0)
        rc = loop_new(&net.loop, &err);
    if (rc == 0)
        rc = loop_watch_fd(net.loop, ROOT_FD, EPOLLIN, on_parent_frame, &net, &source, &err);
    if (rc == 0)
        (void)loop_run(net.loop, &err); /* returns only on failure */
    send_result_frame(NET_FRAME_CERTIFICATE, 0, 0, err.text);
    _exit(EXIT_FAILURE);
}

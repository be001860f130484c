#include "machine/net/port_holder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"

enum { ANSWER_BYTES = 32768, PATIENCE_S = 5 };

struct diag_request {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static int diag_send(int fd, int family, int protocol)
{
    struct diag_request q = {
        .head = {.nlmsg_len = sizeof q,           .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .body = {.sdiag_family = (uint8_t)family,
                 .sdiag_protocol = (uint8_t)protocol,
                 /* The kernel's state of a bound, unconnected UDP socket is "closed". */
                 .idiag_states = protocol == IPPROTO_TCP ? 1u << TCP_LISTEN : 1u << TCP_CLOSE                                 },
    };
    return send(fd, &q, sizeof q, 0) < 0 ? -errno : 0;
}

static void message_visit(const struct nlmsghdr *m, void (*each)(void *ctx, uint16_t port, uint64_t group), void *ctx)
{
    const struct inet_diag_msg *found = NLMSG_DATA(m);
    if (m->nlmsg_len < NLMSG_LENGTH(sizeof *found))
        return;
    const char *at = (const char *)(found + 1);
    for (size_t left = m->nlmsg_len - NLMSG_LENGTH(sizeof *found); left >= sizeof(struct rtattr);) {
        struct rtattr a;
        memcpy(&a, at, sizeof a);
        if (a.rta_len < sizeof a || a.rta_len > left)
            return;
        if (a.rta_type == INET_DIAG_CGROUP_ID && a.rta_len >= RTA_LENGTH(sizeof(uint64_t))) {
            uint64_t group;
            memcpy(&group, at + RTA_LENGTH(0), sizeof group);
            each(ctx, ntohs(found->id.idiag_sport), group);
        }
        size_t step = RTA_ALIGN(a.rta_len);
        at += step < left ? step : left;
        left -= step < left ? step : left;
    }
}

/* Reads answers until the kernel's end marker. */
static int answers_read(int fd, void (*each)(void *ctx, uint16_t port, uint64_t group), void *ctx)
{
    CLEANUP(mem) char *buf = mem_alloc(ANSWER_BYTES);
    for (;;) {
        ssize_t got = recv(fd, buf, ANSWER_BYTES, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        size_t len = (size_t)got;
        for (const struct nlmsghdr *m = (const struct nlmsghdr *)buf; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
            if (m->nlmsg_type == NLMSG_DONE)
                return 0;
            if (m->nlmsg_type == NLMSG_ERROR)
                return ((const struct nlmsgerr *)NLMSG_DATA(m))->error;
            message_visit(m, each, ctx);
        }
    }
}

int port_holders_each(void (*each)(void *ctx, uint16_t port, uint64_t group), void *ctx)
{
    static const int families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
    CLEANUP(close_fd) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int rc = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ? -errno : 0;
    for (size_t i = 0; rc == 0 && i < 4; i++) {
        rc = diag_send(fd, families[i / 2], protocols[i % 2]);
        rc = rc < 0 ? rc : answers_read(fd, each, ctx);
    }
    return rc;
}

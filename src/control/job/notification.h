/* notification.h - notifications about jobs: a POST to a URL, or mail.
 *
 * A notification is a document (KIND_NOTIFICATION). It is written in the transaction of its event and deleted after
 * delivery, so a crash loses none and may repeat one. Delivery is done by the program (struct control_notifier) on
 * another thread; a job never waits for it. Each address receives one notification at a time. Failed deliveries are
 * retried after growing pauses, and given up after NOTIFICATION_TRIES_MAX tries or a day. The settings notify_allow and
 * smtp_url say which addresses are allowed. The mail program is not a setting: struct control_notifier names it.
 */
#pragma once

#include "control/api/request.h"
#include "wire/doc/api.h"

struct notifications;
struct sockaddr;

enum {
    NOTIFICATIONS_MAX = 10000,     /* pending, in total */
    NOTIFICATIONS_USER_MAX = 1000, /* pending, of one user */
    NOTIFICATION_TRIES_MAX = 8,
    NOTIFICATIONS_SENDING_MAX = 4,
    NOTIFICATION_AGE_S_MAX = 86400,
};

/* One notification to deliver. Its strings live until delivery is done. */
struct notification_delivery {
    const char *url;                     /* URL to post to; NULL: mail */
    const char *body;                    /* JSON, or the whole mail with its headers */
    const char *allow;                   /* the setting notify_allow; NULL: mail */
    bool host_named;                     /* the URL's host is an address or localhost, and `allow` names it */
    const char *signature;               /* signature of the body, hexadecimal; NULL: none */
    const char *mail, *from;             /* mail addresses */
    const char *mail_command, *smtp_url; /* one of them is set for mail */
};

/* How notifications are delivered. `send` runs on another thread and blocks until delivery is done or has failed, up to
 * some seconds. */
struct control_notifier {
    void *ctx;
    void (*run)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg); /* like `run` of control_env */
    /* -EINVAL: a permanent failure; other errors are retried. */
    int (*send)(void *ctx, const struct notification_delivery *p, struct berth_err *err);
    const char *mail_command; /* mail program; outlives the control; NULL: none */
};
void control_set_notifier(struct control *c, const struct control_notifier *post);

/* Adds to the change the notifications of this event (one of TOLD_*) for all recipients that the job names. */
void notification_add(struct change *c, const struct object *job, unsigned told, const char *reason, int64_t now_ns);
/* Does the same for every job that starts or ends by this change. */
void notification_scan(struct change *c, int64_t now_ns);
struct request;
/* Checks the recipients of a job that is about to be written. -EINVAL: the error says what to do. */
int notification_check(const struct request *c, const struct job_terms *terms, struct berth_err *err);
/* Result of an allow list such as "https://,http://10.1.2.3:8080/,192.168.7.0/24": URL prefixes, addresses, address
 * ranges. */
enum notification_allowed {
    NOTIFICATION_REFUSED,
    /* allowed if the host resolves to a public address or to one that notification_address_allowed accepts */
    NOTIFICATION_ALLOWED,
    NOTIFICATION_NAMED, /* the list names the URL's host, which is an address or localhost */
};
enum notification_allowed notification_url_allowed(const char *allow, const char *url);
/* Returns whether the list names this address. */
bool notification_address_allowed(const char *allow, const struct sockaddr *address);
/* Checks an allow list before it is set. -EINVAL: the error says what is wrong. */
int notification_allow_check(const char *allow, struct berth_err *err);
bool notifications_mail_command(const struct notifications *n);
/* Gets the value of the secret that the setting notify_secret names as NAME.OWNER/KEY, in the arena; "" if it names
 * none. -EINVAL: no such secret. */
int notification_secret(const struct control *c, const char *named, struct arena *arena, const char **ret,
                        struct berth_err *err);
/* Returns "a@b.org" of "mailto:a@b.org" or "a@b.org"; NULL: not a mail address. */
const char *notification_mail(const char *to);

struct notifications *notifications_new(struct control *control);
void notifications_free(struct notifications *n);
/* Handles a new or deleted notification document. */
void notifications_event(struct notifications *n);
/* Delivers what is due. Returns when to call again (steady time). */
int64_t notifications_step(struct notifications *n, int64_t steady_ns);
void notifications_stop(struct notifications *n);

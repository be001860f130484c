/* notification.h - people are told what becomes of their jobs: a POST to a URL, or mail.
 *
 * What is to be told is a document (KIND_NOTICE), written by the transaction in which it happens, and deleted when it
 * was told: so a crash loses none, and may tell one twice. Sending is done by whoever runs the daemon (struct
 * control_post), on another thread; a job never waits for it. Each address is told one thing at a time. What fails is
 * tried again, later each time, and given up after some tries or a day. The settings say who may be told:
 * notify_allow, smtp_url. The program that takes mail is not a setting: struct control_post names it.
 */
#pragma once

#include "control/api/request.h"
#include "wire/doc/api.h"

struct notices;
struct sockaddr;

enum {
    NOTICES_MAX = 10000,     /* that wait, of all */
    NOTICES_USER_MAX = 1000, /* of one user */
    NOTICE_TRIES_MAX = 8,
    NOTICES_UNDER_WAY = 4,
    NOTICE_AGE_S_MAX = 86400,
};

/* One thing to be sent. Texts live until it is done. */
struct notice_post {
    const char *url;                     /* posted to; or, of mail, NULL */
    const char *body;                    /* JSON, or the whole mail with its head */
    const char *allow;                   /* the setting notify_allow; of mail, NULL */
    bool host_named;                     /* the URL's host is an address or localhost, and `allow` names it */
    const char *signature;               /* of the body, in hex; NULL: none */
    const char *mail, *from;             /* addresses */
    const char *mail_command, *smtp_url; /* one of them; NULL */
};

/* How things are sent. `send` is called on another thread, and returns when it is done or has failed; it may take some
 * seconds. */
struct control_post {
    void *ctx;
    void (*run)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg); /* as control_env's */
    /* -EINVAL: it never will; anything else may pass. */
    int (*send)(void *ctx, const struct notice_post *p, struct berth_err *err);
    const char *mail_command; /* the program that takes mail; outlives the control; NULL: none */
};
void control_set_post(struct control *c, const struct control_post *post);

/* Adds to the change what those want to hear whom the job names for this (one of TOLD_*). */
void notice_add(struct change *c, const struct object *job, unsigned told, const char *reason, int64_t now_ns);
/* The same for every job that starts or is over by this change. */
void notice_scan(struct change *c, int64_t now_ns);
struct call;
/* Of a job that is about to be written: may these addresses be told? -EINVAL with what to do. */
int notice_check(const struct call *c, const struct job_terms *terms, struct berth_err *err);
/* A list like "https://,http://10.1.2.3:8080/,192.168.7.0/24": beginnings of URLs, and addresses or ranges of them. */
enum notice_allowed {
    NOTICE_REFUSED,
    NOTICE_ALLOWED, /* if it is at a public address, or one that notice_address_allowed knows */
    NOTICE_NAMED,   /* the list names the URL's very host, which is an address or localhost */
};
enum notice_allowed notice_url_allowed(const char *allow, const char *url);
/* Does the list name this address? */
bool notice_address_allowed(const char *allow, const struct sockaddr *address);
/* Of a list that is about to be set. -EINVAL with what is wrong. */
int notice_allow_check(const char *allow, struct berth_err *err);
bool notices_mail_command(const struct notices *n);
/* The text of the secret that the setting notify_secret names as NAME.OWNER/KEY, in the arena; "" where it names none.
 * -EINVAL: there is none such. */
int notice_secret(const struct control *c, const char *named, struct arena *arena, const char **ret,
                  struct berth_err *err);
/* "a@b.org" of "mailto:a@b.org" or itself; NULL: it is no address of mail. */
const char *notice_mail(const char *to);

struct notices *notices_new(struct control *control);
void notices_free(struct notices *n);
/* A document of a notice came or went. */
void notices_event(struct notices *n);
/* Sends what is due; tells when to be called again (steady time). */
int64_t notices_step(struct notices *n, int64_t steady_ns);
void notices_stop(struct notices *n);

/* identity.h - which node this machine is, whom it listens to, and how it proves it: STATE/identity/.
 *
 *   node.json   {"node": ID, "control": [URL, ...], "epoch": N}
 *   ca.pem      the cluster's authority
 *   node.pem    certificate and key in one file, so that a renewal replaces both at once
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/err.h"

struct identity {
    char *node;
    char **controls;
    size_t controls_len;
    char *ca_path, *pem_path;
    uint64_t epoch;   /* that the daemon knew when this machine joined: its own come on top */
    int64_t got_ns;   /* since 1970: when it got its certificate */
    int64_t renew_ns; /* when half of the certificate's time is over; 0: not known yet */
};

/* A certificate, key or token, to be freed. */
enum { IDENTITY_FILE_MAX = 64 * 1024 };
int identity_file_read(const char *path, char **ret, struct berth_err *err);

/* -ENOENT: this machine is no node yet, and the text says how it becomes one. */
int identity_read(const char *state, struct identity *ret, struct berth_err *err);
void identity_done(struct identity *id);

/* Asks to be taken in, with what was probed; keeps what it is given. *ret_node: its name, to be freed. -EEXIST: it is a
 * node already. */
int identity_join(const struct agent_options *options, const json_t *probed, char **ret_node, struct berth_err *err);

/* Until when the certificate is good, as the network half reads it. */
void identity_until(struct identity *id, int64_t not_after_ns);
/* After how long the clock, which says `now_ns`, is to be asked again whether it is to be renewed; 0: it is. An hour at the most: a
 * clock is set, and a machine sleeps, while timers know nothing of it. */
int64_t identity_wait_ns(const struct identity *id, int64_t now_ns);

/* A new key of this machine's and the request for its certificate; both to be freed, the key to be kept in memory until
 * the certificate is there. */
int identity_request(char **ret_key_pem, char **ret_request_pem, struct berth_err *err);
/* A certificate with its key, to be kept instead of the one before. */
int identity_renew(struct identity *id, const char *pem, struct berth_err *err);
/* Both in one text, to be freed. */
char *identity_pem(const char *certificate, const char *key_pem);

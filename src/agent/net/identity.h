/* identity.h - the node's identity: its name, the daemon's addresses, CA and certificate, in STATE/identity/.
 *
 *     node.json   {"node": ID, "control": [URL, ...], "epoch": N}
 *     ca.pem      the cluster's certificate authority
 *     node.pem    certificate and key in one file, so that a renewal replaces both at once
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/err.h"

struct node_identity {
    char *node;
    char **controls;
    size_t controls_len;
    char *ca_path, *pem_path;
    uint64_t epoch;   /* the daemon's epoch at the join; this agent's own starts are added */
    int64_t got_ns;   /* since 1970: when the certificate was received */
    int64_t renew_ns; /* since 1970: midpoint of the certificate's lifetime; 0: unknown */
};

/* Reads a file with a certificate, key or token; the caller frees *ret. */
enum { IDENTITY_FILE_MAX = 64 * 1024 };
int identity_file_read(const char *path, char **ret, struct berth_err *err);

/* -ENOENT: this machine has not joined; `err` tells how to join. */
int identity_read(const char *state, struct node_identity *ret, struct berth_err *err);
void identity_done(struct node_identity *id);

/* Joins the cluster: sends the probed machine description and stores the received identity. The caller frees *ret_node,
 * the node's name. -EEXIST: this machine has already joined. */
int identity_join(const struct agent_options *options, const json_t *probed, char **ret_node, struct berth_err *err);

/* Sets the certificate's expiry time, which the net sandbox has read from it. */
void identity_until(struct node_identity *id, int64_t not_after_ns);
/* Returns how long to wait before the renewal is checked again; 0: renew now. At most an hour, because timers do not
 * follow clock changes and suspends. */
int64_t identity_wait_ns(const struct node_identity *id, int64_t now_ns);

/* Creates a new key and its certificate request. The caller frees both and keeps the key in memory until the
 * certificate has arrived. */
int identity_request(char **ret_key_pem, char **ret_request_pem, struct berth_err *err);
/* Replaces the stored certificate and key by `pem`. */
int identity_renew(struct node_identity *id, const char *pem, struct berth_err *err);
/* Concatenates both; the caller frees the result. */
char *identity_pem(const char *certificate, const char *key_pem);

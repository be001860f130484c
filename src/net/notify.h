/* notify.h - reports service status to systemd (sd_notify(3)); each message is one datagram.
 *
 * Does nothing if $NOTIFY_SOCKET is not set. Does not need libsystemd, because the protocol is a line of text.
 */
#pragma once

#include <stdint.h>

/* Sends a state such as "READY=1". Returns 0 on success, 1 if $NOTIFY_SOCKET is not set, -errno if sending failed;
 * callers may ignore a failure. */
int notify_send(const char *state);
/* Returns the watchdog interval: systemd expects "WATCHDOG=1" at least this often. 0: no watchdog. */
int64_t notify_watchdog_ns(void);

/* notify.h - tells systemd how the service is doing (sd_notify(3)), by one datagram a message.
 *
 * Does nothing where $NOTIFY_SOCKET is not set. No libsystemd: the protocol is a line of text.
 */
#pragma once

#include <stdint.h>

/* Sends a state such as "READY=1". 0; 1: nobody listens for it; -errno: it could not be sent, which changes nothing. */
int notify_send(const char *state);
/* How often systemd wants to hear "WATCHDOG=1" at least; 0: never. */
int64_t notify_watchdog_ns(void);

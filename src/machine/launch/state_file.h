/* state_file.h - reads and writes small files as a whole; identifies boots and processes.
 *
 * Used by the agent and by the shim, which has few other dependencies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FILE_BYTES_MAX = 16 << 20 };

/* Writes NAME.new in the directory and renames it to NAME, mode 0600. `durable`: content and name are synced to
 * disk. */
int file_write(int dir, const char *name, const void *bytes, size_t len, bool durable);
/* Reserves disk space for a later file_write of this name. Errors are ignored: file_write may find space then. */
void file_reserve(int dir, const char *name, size_t len);
/* Reads a whole file and appends a NUL; the caller frees *ret with mem_free. -EFBIG: larger than FILE_BYTES_MAX. */
int file_read(int dir, const char *name, char **ret, size_t *ret_len);
/* Reads from the descriptor's position to the end of the file. */
int fd_read(int fd, char **ret, size_t *ret_len);
/* Writes all bytes; returns 0 or -errno. */
int fd_write(int fd, const void *bytes, size_t len);
void close_fd_cleanup(int *fd);
int take_fd(int *fd);

/* The kernel's boot id, different for each boot. */
enum { BOOT_ID_MAX = 40 };
int boot_id(char ret[static BOOT_ID_MAX]);
int64_t boottime_ns(void);
/* Returns the start time of a process in ticks since boot; unique within a boot together with the pid. -ESRCH: no such
 * process. */
int process_start(pid_t pid, uint64_t *ret);
/* Returns a pidfd of the process with this pid and start time; -ESRCH: there is none. */
int process_open(pid_t pid, uint64_t start);

/* Reads STATE/heard: the time of the last contact with the daemon. 0: none in this boot, or unreadable. */
int64_t contact_time_read(const char *path);
/* Formats the text for contact_time_read; returns its length. */
enum { CONTACT_TIME_TEXT_MAX = 128 };
size_t contact_time_text(const char *boot, int64_t at_ns, char ret[static CONTACT_TIME_TEXT_MAX]);

/* state_file.h - small files that are read and written whole, and what tells one boot and one process from another.
 *
 * For the agent and for the shim, which stands on little else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FILE_BYTES_MAX = 16 << 20 };

/* Writes NAME.new below the folder and renames it to NAME, mode 0600. `durable`: file and name are on disk afterwards. */
int file_write(int dir, const char *name, const void *bytes, size_t len, bool durable);
/* Takes room on the disk for what file_write is to write there later, while there is some; where there is none, it may find
 * some then. */
void file_reserve(int dir, const char *name, size_t len);
/* All of a file, with a NUL after it, to be freed with mem_free. -EFBIG: larger than FILE_BYTES_MAX. */
int file_read(int dir, const char *name, char **ret, size_t *ret_len);
/* The same from where a descriptor stands to its end. */
int fd_read(int fd, char **ret, size_t *ret_len);
/* Writes all, or fails. */
int fd_write(int fd, const void *bytes, size_t len);
void close_fd_cleanup(int *fd);
int take_fd(int *fd);

/* Two starts of the machine have different ones. */
enum { BOOT_ID_MAX = 40 };
int boot_id(char ret[static BOOT_ID_MAX]);
int64_t boottime_ns(void);
/* When this process began, in ticks since the boot; with its number it is unique within the boot. -ESRCH: no such. */
int process_start(pid_t pid, uint64_t *ret);
/* A pidfd of the process with this number that began then; -ESRCH: it is another one, or none. */
int process_open(pid_t pid, uint64_t start);

/* STATE/heard: time and boot. 0: never in this boot, or not readable. */
int64_t heard_read(const char *path);
/* The text that heard_read reads, in the caller's buffer; returns its length. */
enum { HEARD_TEXT_MAX = 128 };
size_t heard_text(const char *boot, int64_t at_ns, char ret[static HEARD_TEXT_MAX]);

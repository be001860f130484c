/* failing_disk_test.h - an SQLite VFS for tests, which makes the n-th file operation of a kind fail.
 *
 * disk_install makes the VFS the default for new connections. disk_fails configures a failure, disk_works ends it. To
 * add an operation: add a member to enum fault, and call `fails` in the operation's method.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <sqlite3.h>

enum fault { FAULT_READ, FAULT_WRITE, FAULT_SYNC, FAULT_OPEN, FAULTS_LEN };

/* An exception to "no globals": SQLite identifies a VFS by a process-wide name. Written before threads run or while
 * they wait; read under the lock. */
static struct {
    pthread_mutex_t lock;
    enum fault what;
    int code;          /* result of a failing operation; 0: nothing fails */
    int error;         /* errno of a failing operation */
    const char *where; /* part of the file name; NULL: any file */
    unsigned after;    /* number of operations that still succeed */
    unsigned times;    /* number of operations that fail afterwards */
    unsigned failed;
    void (*opening)(void *ctx); /* called once when store.db is opened */
    void *opening_ctx;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct layered {
    sqlite3_file base;
    const char *name;
    sqlite3_file *real;
};

static inline sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct layered *)file)->real;
}

static inline int fails(enum fault what, const char *name)
{
    int code = SQLITE_OK;
    (void)pthread_mutex_lock(&disk.lock);
    bool here = !disk.where || (name && strstr(name, disk.where));
    if (disk.code && disk.what == what && here) {
        if (disk.after) {
            disk.after--;
        } else if (disk.times) {
            disk.times--;
            disk.failed++;
            code = disk.code;
            errno = disk.error;
        }
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return code;
}

static inline int layer_close(sqlite3_file *f)
{
    int rc = real_of(f)->pMethods->xClose(real_of(f));
    sqlite3_free(real_of(f));
    return rc;
}

static inline int layer_read(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
    int code = fails(FAULT_READ, ((struct layered *)f)->name);
    return code ? code : real_of(f)->pMethods->xRead(real_of(f), to, len, at);
}

static inline int layer_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
    int code = fails(FAULT_WRITE, ((struct layered *)f)->name);
    if (!code)
        return real_of(f)->pMethods->xWrite(real_of(f), from, len, at);
    if (len > 1) /* torn write: a part is written */
        (void)real_of(f)->pMethods->xWrite(real_of(f), from, len / 2, at);
    return code;
}

static inline int layer_truncate(sqlite3_file *f, sqlite3_int64 len)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), len);
}

static inline int layer_sync(sqlite3_file *f, int flags)
{
    (void)flags;
    return fails(FAULT_SYNC, ((struct layered *)f)->name); /* no power failure happens here, so nothing is synced */
}

static inline int layer_size(sqlite3_file *f, sqlite3_int64 *len)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), len);
}

static inline int layer_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static inline int layer_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static inline int layer_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static inline int layer_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static inline int layer_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static inline int layer_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static inline int layer_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static inline int layer_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static inline void layer_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static inline int layer_shm_unmap(sqlite3_file *f, int remove_it)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove_it);
}

static const sqlite3_io_methods layer_methods = {
    .iVersion = 2,
    .xClose = layer_close,
    .xRead = layer_read,
    .xWrite = layer_write,
    .xTruncate = layer_truncate,
    .xSync = layer_sync,
    .xFileSize = layer_size,
    .xLock = layer_lock,
    .xUnlock = layer_unlock,
    .xCheckReservedLock = layer_reserved,
    .xFileControl = layer_control,
    .xSectorSize = layer_sector,
    .xDeviceCharacteristics = layer_traits,
    .xShmMap = layer_shm_map,
    .xShmLock = layer_shm_lock,
    .xShmBarrier = layer_shm_barrier,
    .xShmUnmap = layer_shm_unmap,
};

static inline int layer_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    struct layered *l = (struct layered *)f;
    l->base.pMethods = NULL;
    if (flags & SQLITE_OPEN_MAIN_DB) {
        (void)pthread_mutex_lock(&disk.lock);
        void (*opening)(void *ctx) = disk.opening;
        disk.opening = NULL;
        (void)pthread_mutex_unlock(&disk.lock);
        if (opening)
            opening(disk.opening_ctx);
        int code = fails(FAULT_OPEN, name);
        if (code)
            return code;
    }
    l->name = name;
    l->real = sqlite3_malloc(real->szOsFile);
    memset(l->real, 0, (size_t)real->szOsFile);
    int rc = real->xOpen(real, name, l->real, flags, ret_flags);
    if (l->real->pMethods)
        l->base.pMethods = &layer_methods;
    else
        sqlite3_free(l->real);
    return rc;
}

static inline int disk_install(sqlite3_vfs *vfs)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    *vfs = *real;
    vfs->szOsFile = sizeof(struct layered);
    vfs->zName = "failing";
    vfs->pNext = NULL;
    vfs->pAppData = real; /* the methods of the real VFS do not use this field */
    vfs->xOpen = layer_open;
    return sqlite3_vfs_register(vfs, 1);
}

static inline void disk_fails(enum fault what, int code, int error, const char *where, unsigned after, unsigned times)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.what = what;
    disk.code = code;
    disk.error = error;
    disk.where = where;
    disk.after = after;
    disk.times = times;
    disk.failed = 0;
    (void)pthread_mutex_unlock(&disk.lock);
}

static inline unsigned disk_works(void)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.code = 0;
    unsigned failed = disk.failed;
    (void)pthread_mutex_unlock(&disk.lock);
    return failed;
}

/* A disk that fails when it is told to: preloaded, it stands before the C library's calls that change a disk.

   Calls below one folder are counted: fsync, rename, link, mkdir, and every open that may write. The one that was
   chosen answers with an error, either instead of doing its work or after it. Python reaches arm() and counted()
   through ctypes; Rust and C code of extension modules go through the same calls. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t folder_length;
static atomic_long seen;
static long chosen = -1;
static int error_number, after, times;
static char log_of[4096][24];

void arm(const char *below, long which, int number, int done_first, int how_often) {
    strncpy(folder, below, sizeof folder - 1);
    folder_length = strlen(folder);
    error_number = number;
    after = done_first;
    times = how_often;
    atomic_store(&seen, 0);
    chosen = which;
}

void disarm(void) { folder_length = 0; chosen = -1; }
long counted(void) { return atomic_load(&seen); }
const char *name_of(long which) { return which >= 0 && which < 4096 ? log_of[which] : ""; }

static int is_below(const char *path) {
    return folder_length && path && strncmp(path, folder, folder_length) == 0;
}

static int is_open_below(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

/* Whether this call is the one that fails (or one of those after it, if several are to fail). */
static int fails(const char *name) {
    long mine = atomic_fetch_add(&seen, 1);
    if (mine < 4096) strncpy(log_of[mine], name, 23);
    return chosen >= 0 && mine >= chosen && mine < chosen + times;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define GUARDED(concerned, name, call)                                   \
    do {                                                                 \
        if (!(concerned) || !fails(name)) return call;                   \
        if (after) (void)!call;                                          \
        errno = error_number;                                            \
        return -1;                                                       \
    } while (0)

int fsync(int descriptor) { GUARDED(is_open_below(descriptor), "fsync", REAL(fsync)(descriptor)); }
int fdatasync(int descriptor) { GUARDED(is_open_below(descriptor), "fdatasync", REAL(fdatasync)(descriptor)); }
int rename(const char *from, const char *to) { GUARDED(is_below(to), "rename", REAL(rename)(from, to)); }
int link(const char *from, const char *to) { GUARDED(is_below(to), "link", REAL(link)(from, to)); }
int mkdir(const char *path, mode_t mode) { GUARDED(is_below(path), "mkdir", REAL(mkdir)(path, mode)); }

int renameat(int a, const char *from, int b, const char *to) {
    GUARDED(is_below(to), "rename", REAL(renameat)(a, from, b, to));
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    GUARDED(is_below(to), "link", REAL(linkat)(a, from, b, to, flags));
}

int mkdirat(int a, const char *path, mode_t mode) {
    GUARDED(is_below(path), "mkdir", REAL(mkdirat)(a, path, mode));
}

#define MODE                                                             \
    mode_t mode = 0;                                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                                 \
        va_list more;                                                    \
        va_start(more, flags);                                           \
        mode = va_arg(more, mode_t);                                     \
        va_end(more);                                                    \
    }
/* An open is never done and then reported as failed: its descriptor would be lost. */
#define OPENED(call)                                                     \
    do {                                                                 \
        int writes = (flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0;       \
        if (!writes || !is_below(path) || !fails("open")) return call;   \
        errno = error_number;                                            \
        return -1;                                                       \
    } while (0)

int open(const char *path, int flags, ...) { MODE OPENED(REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE OPENED(REAL(open64)(path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) { MODE OPENED(REAL(openat)(at, path, flags, mode)); }
int openat64(int at, const char *path, int flags, ...) { MODE OPENED(REAL(openat64)(at, path, flags, mode)); }

/* What a test puts before the C library of the server: a clock that jumps and a disk that is slow
 * or full, as the files in $FAULTY say at each call. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The number in a file of $FAULTY; 0 without one. */
static long told(const char *name) {
    const char *directory = getenv("FAULTY");
    char path[512], text[32] = {0};
    if (!directory) return 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int before = errno;
    long number = 0;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (syscall(SYS_read, fd, text, sizeof text - 1) > 0) number = atol(text);
        syscall(SYS_close, fd);
    }
    errno = before;
    return number;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += told("clock");
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}

/* Whether it is a file of the database. */
static int is_database(int fd) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "/glovebox.db") != NULL;
}

static int is_full(const char *which, int fd) {
    if (!told(which) || !is_database(fd)) return 0;
    errno = ENOSPC;
    return 1;
}

static void linger(void) {
    long ms = told("slow");
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (ms) nanosleep(&pause, NULL);
}

int fsync(int fd) {
    linger();
    return is_full("full-sync", fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    linger();
    return is_full("full-sync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return is_full("full-write", fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return is_full("full-write", fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

/* fsync, fdatasync, pwrite and pwritev that fail or are late while the file $KRAFTD_DISK_FAULT exists.
 *
 * For LD_PRELOAD. The file holds a number: the errno to fail with, or a delay in microseconds, negated. Two words
 * may follow: the affected calls (sync, which is the default, or write), and the end of the affected files' paths.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends_with(int fd, const char *suffix) {
    char link[32], path[PATH_MAX];
    size_t wanted = strlen(suffix);
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path);
    return length >= (ssize_t)wanted && !memcmp(path + length - wanted, suffix, wanted);
}

static int faulty(int fd, const char *call) {
    const char *name = getenv("KRAFTD_DISK_FAULT");
    FILE *file = name ? fopen(name, "r") : NULL;
    char calls[16] = "sync", suffix[256] = "";
    long fault = 0;
    if (!file)
        return 0;
    if (fscanf(file, "%ld %15s %255s", &fault, calls, suffix) < 1)
        fault = 0;
    fclose(file);
    if (strcmp(calls, call) || !ends_with(fd, suffix))
        return 0;
    if (fault < 0)
        usleep((useconds_t)-fault);
    if (fault <= 0)
        return 0;
    errno = (int)fault;
    return 1;
}

#define SYNC(name)                                                       \
    int name(int fd) {                                                   \
        int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name);        \
        return faulty(fd, "sync") ? -1 : real(fd);                       \
    }

#define WRITE(name, offset)                                              \
    ssize_t name(int fd, const void *data, size_t size, offset at) {     \
        ssize_t (*real)(int, const void *, size_t, offset) =             \
            (ssize_t(*)(int, const void *, size_t, offset))dlsym(RTLD_NEXT, #name); \
        return faulty(fd, "write") ? -1 : real(fd, data, size, at);      \
    }

SYNC(fsync)
SYNC(fdatasync)
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

#define WRITE_VECTOR(name, offset)                                       \
    ssize_t name(int fd, const struct iovec *data, int count, offset at) { \
        ssize_t (*real)(int, const struct iovec *, int, offset) =        \
            (ssize_t(*)(int, const struct iovec *, int, offset))dlsym(RTLD_NEXT, #name); \
        return faulty(fd, "write") ? -1 : real(fd, data, count, at);     \
    }

#define WRITE_VECTOR_FLAGS(name, offset)                                 \
    ssize_t name(int fd, const struct iovec *data, int count, offset at, int flags) { \
        ssize_t (*real)(int, const struct iovec *, int, offset, int) =   \
            (ssize_t(*)(int, const struct iovec *, int, offset, int))dlsym(RTLD_NEXT, #name); \
        return faulty(fd, "write") ? -1 : real(fd, data, count, at, flags); \
    }

WRITE_VECTOR(pwritev, off_t)
WRITE_VECTOR(pwritev64, off64_t)
WRITE_VECTOR_FLAGS(pwritev2, off_t)
WRITE_VECTOR_FLAGS(pwritev64v2, off64_t)

/* fsync and fdatasync that fail or are late while a file says so: $KRAFTD_FSYNC_FAULT names it.
 *
 * To be preloaded. The file holds one number: an errno to fail with, or how many microseconds to be late,
 * negated. No such file: all is well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int faulty(void) {
    const char *path = getenv("KRAFTD_FSYNC_FAULT");
    FILE *file = path ? fopen(path, "r") : NULL;
    long fault = 0;
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &fault) != 1)
        fault = 0;
    fclose(file);
    if (fault < 0)
        usleep((useconds_t)-fault);
    if (fault <= 0)
        return 0;
    errno = (int)fault;
    return 1;
}

#define FAULTY(name)                                                     \
    int name(int fd) {                                                   \
        int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name);        \
        return faulty() ? -1 : real(fd);                                 \
    }

FAULTY(fsync)
FAULTY(fdatasync)

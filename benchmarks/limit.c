/* The physical limit of a save: lines of random bytes written over zeros that are laid and synced, one fdatasync each.
   limit FILE SAVES SIZE: prints the nanoseconds of each save, one a line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long saves = atol(argv[2]), size = atol(argv[3]), left = saves * size;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
    char *zeros = calloc(1, 1 << 20), *line = malloc(size);
    long *took = malloc(saves * sizeof *took);
    if (fd < 0 || !zeros || !line || !took) return 1;
    for (long at = 0; left > 0; at += 1 << 20, left -= 1 << 20)
        if (pwrite(fd, zeros, left < 1 << 20 ? left : 1 << 20, at) < 0) return 1;
    if (fsync(fd)) return 1;
    srandom(1);
    for (long i = 0; i < saves; i++) {
        for (long k = 0; k < size; k++) line[k] = 'a' + random() % 26;
        long begun = now();
        if (pwrite(fd, line, size, i * size) != size || fdatasync(fd)) return 1;
        took[i] = now() - begun;
    }
    for (long i = 0; i < saves; i++) printf("%ld\n", took[i]);
    return 0;
}

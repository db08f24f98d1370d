#define _POSIX_C_SOURCE 200809L

#include "files.h"

#ifndef _WIN32

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static penstock_file seen(const struct stat *state)
{
    if (!S_ISREG(state->st_mode))
        return (penstock_file){-1, 0};
#ifdef __APPLE__
    struct timespec changed = state->st_mtimespec;
#else
    struct timespec changed = state->st_mtim;
#endif
    return (penstock_file){state->st_size, (int64_t)changed.tv_sec * 1000000000 + changed.tv_nsec};
}

void penstock_look_at_files(const char *const *paths, size_t count, penstock_file *files)
{
    struct stat state;
    for (size_t i = 0; i < count; i++)
        files[i] = stat(paths[i], &state) == 0 ? seen(&state) : (penstock_file){-1, 0};
}

static int is_same(int descriptor, penstock_file expected)
{
    struct stat state;
    if (fstat(descriptor, &state) != 0)
        return 0;
    penstock_file now = seen(&state);
    return now.size == expected.size && now.changed_ns == expected.changed_ns;
}

/* A read may be interrupted, and gives at most 2 GB at once. */
static int fill(int descriptor, char *out, size_t size)
{
    while (size > 0) {
        ssize_t count = read(descriptor, out, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return 0;
        out += count;
        size -= (size_t)count;
    }
    return 1;
}

static int read_file(const char *path, penstock_file expected, char *out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    int is_whole = is_same(descriptor, expected) && fill(descriptor, out, (size_t)expected.size);
    close(descriptor);
    return is_whole;
}

#else /* every file is left to the caller */

void penstock_look_at_files(const char *const *paths, size_t count, penstock_file *files)
{
    (void)paths;
    for (size_t i = 0; i < count; i++)
        files[i] = (penstock_file){-1, 0};
}

static int read_file(const char *path, penstock_file expected, char *out)
{
    (void)path, (void)expected, (void)out;
    return 0;
}

#endif

size_t penstock_read_files(const char *const *paths, size_t count, const penstock_file *files, char *out,
                           uint8_t *is_read)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        is_read[i] = files[i].size >= 0 && read_file(paths[i], files[i], out + used);
        if (files[i].size > 0)
            used += (size_t)files[i].size;
    }
    return used;
}

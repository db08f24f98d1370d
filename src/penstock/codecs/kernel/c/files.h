/* Many small files into one stretch of memory. Plain C, knows no Python. */
#ifndef PENSTOCK_FILES_H
#define PENSTOCK_FILES_H

#include <stddef.h>
#include <stdint.h>

/* A regular file as it is found; of anything else, and of what cannot be looked at, the size is −1. */
typedef struct {
    int64_t size, changed_ns;
} penstock_file;

void penstock_look_at_files(const char *const *paths, size_t count, penstock_file *files);

/* Read files one after another into `out`, which has room for all sizes that are above zero. `is_read` says which
 * were read whole, and were still as they had been found when they were opened. Answers the bytes of `out` in use. */
size_t penstock_read_files(const char *const *paths, size_t count, const penstock_file *files, char *out,
                           uint8_t *is_read);

#endif

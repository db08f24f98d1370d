/* Damaged JPEGs measured and files read, without Python: built with sanitizers, it must end with 0.
 *
 * packing_mutations COUNT FILE...; prints how many JPEGs were measured, how many were not, and the files that were read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "jpeg_headers.h"
#include "measure.h"

static uint64_t state = 7;

static size_t below(size_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((state >> 33) % limit);
}

/* All files one after another in memory that is exactly as large; says how many came whole. */
static size_t read_all(const char *const *paths, size_t count, penstock_file *files, char **memory)
{
    size_t bytes = 0, whole = 0;
    uint8_t *is_read = malloc(count);
    penstock_look_at_files(paths, count, files);
    for (size_t i = 0; i < count; i++)
        bytes += files[i].size > 0 ? (size_t)files[i].size : 0;
    *memory = malloc(bytes + 1);
    if (penstock_read_files(paths, count, files, *memory, is_read) != bytes)
        exit(2);
    for (size_t i = 0; i < count; i++)
        whole += is_read[i];
    free(is_read);
    return whole;
}

/* Two at a time, so that memory is used again; says whether the second one was measured. */
static int try_jpeg(const char *seed, size_t size)
{
    size_t kept = below(6) ? size : 1 + below(size);
    unsigned char *bytes = malloc(kept); /* exactly as large: reading past the end is seen */
    memcpy(bytes, seed, kept);
    for (size_t changes = below(4); changes > 0; changes--)
        bytes[below(below(2) && kept > 700 ? 700 : kept)] = (unsigned char)below(256);
    penstock_source sources[2] = {{bytes, kept}, {bytes, kept}};
    penstock_sums sums[2];
    penstock_header header;
    if (penstock_plain_jpeg(bytes, kept, &header) && (header.width < 1 || header.height < 1))
        exit(3);
    penstock_measure_halved(sources, 2, (unsigned)below(2) * 20, sums);
    free(bytes);
    return sums[1].pixels > 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    size_t count = (size_t)argc - 2, measured = 0, tries = (size_t)atol(argv[1]);
    const char *const *paths = (const char *const *)argv + 2;
    penstock_file *files = malloc(count * sizeof *files);
    char *memory;
    size_t whole = read_all(paths, count, files, &memory);
    for (size_t i = 0; i < tries; i++) {
        size_t which = below(count), start = 0;
        for (size_t before = 0; before < which; before++)
            start += files[before].size > 0 ? (size_t)files[before].size : 0;
        if (files[which].size > 0)
            measured += (size_t)try_jpeg(memory + start, (size_t)files[which].size);
    }
    printf("%zu %zu %zu\n", measured, tries - measured, whole);
    free(memory);
    free(files);
    return 0;
}

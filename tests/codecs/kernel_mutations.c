/* Damaged JPEGs through the kernel, without Python: built with sanitizers, it must end with 0.
 *
 * kernel_mutations COUNT SEED FILE...; prints how many were done, of another kind, and failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

enum { MOST_BYTES = 1 << 20 };

static uint64_t state;

static uint64_t random_bits(void)
{
    uint64_t value = state += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

static size_t below(size_t limit)
{
    return (size_t)(random_bits() % limit);
}

static penstock_source read_whole(const char *path)
{
    unsigned char *bytes = malloc(MOST_BYTES);
    FILE *file = fopen(path, "rb");
    if (bytes == NULL || file == NULL)
        exit(2);
    size_t size = fread(bytes, 1, MOST_BYTES, file);
    fclose(file);
    return (penstock_source){bytes, size};
}

/* Some bytes are changed, half of them in the headers; sometimes the end is cut off or a piece is moved. */
static size_t damage(unsigned char *bytes, size_t size)
{
    for (size_t changes = below(5); changes > 0; changes--)
        bytes[below(below(2) && size > 700 ? 700 : size)] = (unsigned char)random_bits();
    if (below(8) == 0)
        return 1 + below(size);
    if (below(8) == 0) {
        size_t length = 1 + below(size / 2), from = below(size - length), to = below(size - length);
        memmove(bytes + to, bytes + from, length);
    }
    return size;
}

static penstock_crop random_crop(void)
{
    int32_t extreme[] = {INT32_MIN, -1, 0, INT32_MAX};
    penstock_crop crop = {(int32_t)below(40), (int32_t)below(40), 1 + (int32_t)below(60), 1 + (int32_t)below(40)};
    if (below(50) == 0)
        crop.x = extreme[below(4)];
    if (below(50) == 0)
        crop.height = extreme[below(4)];
    return crop;
}

static int try_one(penstock_source seed, const float *table)
{
    unsigned char *copy = malloc(seed.size);
    memcpy(copy, seed.bytes, seed.size);
    size_t size = damage(copy, seed.size);
    unsigned char *bytes = malloc(size); /* exactly as large: reading past the end is seen */
    memcpy(bytes, copy, size);
    penstock_target target = {1 + (int)below(70), 1 + (int)below(50), below(2) ? table : NULL, (int)below(2)};
    if (below(4) == 0)
        target.width = target.height = 1 + (int)below(6);
    penstock_source sources[2] = {{bytes, size}, {bytes, size}};
    penstock_crop crops[2] = {random_crop(), random_crop()};
    uint8_t flips[2] = {(uint8_t)random_bits(), (uint8_t)random_bits()};
    penstock_result results[2];
    void *out = malloc(2 * penstock_sample_bytes(&target));
    penstock_decode_range(sources, crops, flips, 2, &target, out, results);
    free(out);
    free(bytes);
    free(copy);
    return results[1].status;
}

int main(int count, char **arguments)
{
    float table[PENSTOCK_CHANNELS * PENSTOCK_LEVELS] = {0};
    long tally[3] = {0, 0, 0};
    if (count < 4)
        return 2;
    long tries = atol(arguments[1]);
    state = (uint64_t)atol(arguments[2]);
    size_t files = (size_t)(count - 3);
    penstock_source *seeds = calloc(files, sizeof *seeds);
    for (size_t i = 0; i < files; i++)
        seeds[i] = read_whole(arguments[3 + i]);
    for (long i = 0; i < tries; i++)
        tally[try_one(seeds[below(files)], table)]++;
    for (size_t i = 0; i < files; i++)
        free((void *)seeds[i].bytes);
    free(seeds);
    printf("%ld %ld %ld\n", tally[PENSTOCK_DONE], tally[PENSTOCK_OTHER], tally[PENSTOCK_FAILED]);
    return 0;
}

/* The kernel without Python: two threads over the same images and crops, one round for each letter on stdin:
 * u writes uint8, f writes normalised float32. Answers with seconds.
 *
 * kernel_loop JOBS THREADS; JOBS is: int32 count, width, height, range; then for each image int64 bytes,
 * int32 x y width height, int32 flips; then all bytes, one image after another.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel.h"

typedef struct {
    int64_t bytes;
    penstock_crop crop;
    int32_t flips;
} __attribute__((packed)) job;

typedef struct {
    int32_t count, width, height, range;
} heading;

static heading head;
static penstock_target target;
static penstock_source *sources;
static penstock_crop *crops;
static uint8_t *flips;
static float table[PENSTOCK_CHANNELS * PENSTOCK_LEVELS];
static int next_start;

static void *checked(void *memory)
{
    if (memory == NULL)
        exit(2);
    return memory;
}

static void read_exactly(FILE *file, void *into, size_t bytes)
{
    if (fread(into, 1, bytes, file) != bytes)
        exit(2);
}

static void load(const char *path)
{
    FILE *file = checked(fopen(path, "rb"));
    read_exactly(file, &head, sizeof head);
    size_t count = (size_t)head.count;
    sources = checked(calloc(count, sizeof *sources));
    crops = checked(calloc(count, sizeof *crops));
    flips = checked(calloc(count, 1));
    for (size_t i = 0; i < count; i++) {
        job one;
        read_exactly(file, &one, sizeof one);
        sources[i].size = (size_t)one.bytes;
        crops[i] = one.crop;
        flips[i] = (uint8_t)one.flips;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char *bytes = checked(malloc(sources[i].size));
        read_exactly(file, bytes, sources[i].size);
        sources[i].bytes = bytes;
    }
    fclose(file);
    target = (penstock_target){head.width, head.height, NULL, 0};
}

static void *work(void *unused)
{
    (void)unused;
    size_t range = (size_t)head.range;
    penstock_result *results = checked(calloc(range, sizeof *results));
    void *out = checked(malloc(range * penstock_sample_bytes(&target)));
    for (;;) {
        int start = __sync_fetch_and_add(&next_start, head.range);
        if (start >= head.count)
            break;
        size_t count = start + head.range <= head.count ? range : (size_t)(head.count - start);
        penstock_decode_range(sources + start, crops + start, flips + start, count, &target, out, results);
        for (size_t i = 0; i < count; i++)
            if (results[i].status != PENSTOCK_DONE)
                exit(3);
    }
    free(out);
    free(results);
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int count, char **arguments)
{
    pthread_t threads[64];
    if (count != 3)
        return 2;
    load(arguments[1]);
    int workers = atoi(arguments[2]);
    for (int i = 0; i < PENSTOCK_CHANNELS * PENSTOCK_LEVELS; i++)
        table[i] = ((float)(i % PENSTOCK_LEVELS) - 116.0f) / 57.0f;
    int letter;
    while (workers >= 1 && workers <= 64 && (letter = getchar()) != EOF) {
        target.table = letter == 'f' ? table : NULL;
        double start = now();
        next_start = 0;
        for (int i = 0; i < workers; i++)
            if (pthread_create(&threads[i], NULL, work, NULL) != 0)
                return 2;
        for (int i = 0; i < workers; i++)
            pthread_join(threads[i], NULL);
        printf("%.9f\n", now() - start);
        fflush(stdout);
    }
    return 0;
}

/* The kernel without Python: threads over the same images and views, one round for each letter on stdin: u writes
 * uint8, f writes normalised float32. Answers with seconds.
 *
 * kernel_loop JOBS THREADS; JOBS is a heading, then for each sample a job, then all bytes of all images.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel.h"

typedef struct {
    int64_t is_raw, count, width, height, range, bytes;
} heading;

typedef struct {
    int64_t offset, bytes, width, height; /* where the image is; its size counts for raw pixels */
    penstock_view view;
    int64_t flips;
} job;

static heading head;
static penstock_target target;
static penstock_source whole, *sources;
static penstock_place *places;
static penstock_view *views;
static uint8_t *flips;
static float table[PENSTOCK_CHANNELS * PENSTOCK_LEVELS];
static int64_t next_start;

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
    unsigned char *bytes = checked(malloc((size_t)head.bytes));
    whole = (penstock_source){bytes, (size_t)head.bytes};
    sources = checked(calloc(count, sizeof *sources));
    places = checked(calloc(count, sizeof *places));
    views = checked(calloc(count, sizeof *views));
    flips = checked(calloc(count, 1));
    for (size_t i = 0; i < count; i++) {
        job one;
        read_exactly(file, &one, sizeof one);
        sources[i] = (penstock_source){bytes + one.offset, (size_t)one.bytes};
        places[i] = (penstock_place){0, one.offset, one.width, one.height};
        views[i] = one.view;
        flips[i] = (uint8_t)one.flips;
    }
    read_exactly(file, bytes, (size_t)head.bytes);
    fclose(file);
    target = (penstock_target){(int)head.width, (int)head.height, NULL, 0, 0, 0};
}

static size_t make(int64_t start, size_t count, void *out, penstock_failure *failures)
{
    if (head.is_raw)
        return penstock_pixels_range(&whole, 1, places + start, views + start, flips + start, count, &target, out,
                                     failures);
    return penstock_decode_range(sources + start, views + start, flips + start, count, &target, out, failures);
}

static void *work(void *unused)
{
    (void)unused;
    penstock_failure *failures = checked(calloc((size_t)head.range, sizeof *failures));
    void *out = checked(malloc((size_t)head.range * penstock_sample_bytes(&target)));
    for (;;) {
        int64_t start = __sync_fetch_and_add(&next_start, head.range);
        if (start >= head.count)
            break;
        int64_t count = start + head.range <= head.count ? head.range : head.count - start;
        if (make(start, (size_t)count, out, failures) > 0)
            exit(3);
    }
    free(out);
    free(failures);
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

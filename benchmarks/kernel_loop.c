/* The kernel without Python: threads over images and views, one round for each letter on stdin. Answers with seconds.
 *
 *   u  uint8 from JPEGs       f  normalised float32 from JPEGs
 *   U  uint8 from raw pixels  F  normalised float32 from raw pixels
 *   c  raw pixels without the kernel: rows copied, outside black, flipped; views of unchanged size only
 *
 * kernel_loop ORDERS THREADS; ORDERS is a file of int64 numbers:
 *   images, samples, width, height, range                    range: samples that a thread takes at a time
 *   for each image    bytes, width, height
 *   for each sample   image, x, y, width, height, resized width and height, part x and y, flips
 * and then the bytes of all images, one after another.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

enum { MOST_THREADS = 64, PIXEL_BYTES = 3 };

typedef struct {
    int64_t images, samples, width, height, range;
} heading;

typedef struct {
    int64_t bytes, width, height;
} image;

typedef struct {
    int64_t image;
    penstock_view view;
    int64_t flips;
} sample;

static const heading *head;
static penstock_target target;
static penstock_source whole;     /* the bytes of all images */
static penstock_source *sources;  /* of each sample */
static penstock_place *places;
static penstock_view *views;
static uint8_t *flips;
static float table[PENSTOCK_CHANNELS * PENSTOCK_LEVELS];
static int letter;
static int64_t next_start;

static void *checked(void *memory)
{
    if (memory == NULL || memory == MAP_FAILED)
        exit(2);
    return memory;
}

static const char *map(const char *path, size_t *bytes)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) != 0)
        exit(2);
    *bytes = (size_t)status.st_size;
    const char *memory = checked(mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0));
    close(file);
    return memory;
}

static void find_images(const image *images, int64_t *offsets)
{
    int64_t offset = 0;
    for (int64_t i = 0; i < head->images; i++) {
        offsets[i] = offset;
        offset += images[i].bytes;
    }
    if ((uint64_t)offset != whole.size)
        exit(2);
}

static void load(const char *path)
{
    size_t bytes;
    const char *memory = map(path, &bytes);
    head = (const heading *)memory;
    const image *images = (const image *)(head + 1);
    const sample *samples = (const sample *)(images + head->images);
    whole.bytes = (const unsigned char *)(samples + head->samples);
    whole.size = bytes - (size_t)((const char *)whole.bytes - memory);
    int64_t *offsets = checked(calloc((size_t)head->images, sizeof *offsets));
    find_images(images, offsets);
    size_t count = (size_t)head->samples;
    sources = checked(calloc(count, sizeof *sources));
    places = checked(calloc(count, sizeof *places));
    views = checked(calloc(count, sizeof *views));
    flips = checked(calloc(count, 1));
    for (size_t i = 0; i < count; i++) {
        image from = images[samples[i].image];
        int64_t offset = offsets[samples[i].image];
        sources[i] = (penstock_source){whole.bytes + offset, (size_t)from.bytes};
        places[i] = (penstock_place){0, offset, from.width, from.height};
        views[i] = samples[i].view;
        flips[i] = (uint8_t)samples[i].flips;
    }
    free(offsets);
    target.width = (int)head->width;
    target.height = (int)head->height;
}

static void copy_row(uint8_t *out, const uint8_t *row, int64_t row_pixels, int64_t start, int64_t count, int flipped)
{
    int64_t left = start < 0 ? -start : 0, right = start + count > row_pixels ? row_pixels - start : count;
    memset(out, 0, (size_t)(count * PIXEL_BYTES));
    if (!flipped) {
        memcpy(out + left * PIXEL_BYTES, row + (start + left) * PIXEL_BYTES, (size_t)((right - left) * PIXEL_BYTES));
        return;
    }
    for (int64_t i = left; i < right; i++)
        memcpy(out + (count - 1 - i) * PIXEL_BYTES, row + (start + i) * PIXEL_BYTES, PIXEL_BYTES);
}

static void copy_sample(uint8_t *out, size_t number)
{
    const penstock_view *view = &views[number];
    const penstock_place *place = &places[number];
    size_t row_bytes = (size_t)target.width * PIXEL_BYTES;
    for (int64_t y = 0; y < target.height; y++, out += row_bytes) {
        int64_t from = view->y + view->part_y + y;
        if (from < 0 || from >= place->height)
            memset(out, 0, row_bytes);
        else
            copy_row(out, sources[number].bytes + from * place->width * PIXEL_BYTES, place->width,
                     view->x + view->part_x, target.width, flips[number] & PENSTOCK_FLIP_HORIZONTAL);
    }
}

static size_t make(size_t start, size_t count, void *out, penstock_failure *failures)
{
    if (letter == 'u' || letter == 'f')
        return penstock_decode_range(sources + start, views + start, flips + start, count, &target, out, failures);
    if (letter == 'U' || letter == 'F')
        return penstock_pixels_range(&whole, 1, places + start, views + start, flips + start, count, &target, out,
                                     failures);
    for (size_t i = 0; i < count; i++)
        copy_sample((uint8_t *)out + i * penstock_sample_bytes(&target), start + i);
    return 0;
}

static void *work(void *unused)
{
    (void)unused;
    int64_t range = head->range;
    penstock_failure *failures = checked(calloc((size_t)range, sizeof *failures));
    void *out = checked(malloc((size_t)range * penstock_sample_bytes(&target)));
    for (;;) {
        int64_t start = __sync_fetch_and_add(&next_start, range);
        if (start >= head->samples)
            break;
        int64_t count = start + range <= head->samples ? range : head->samples - start;
        if (make((size_t)start, (size_t)count, out, failures) != 0) {
            fprintf(stderr, "%s\n", failures[0].reason);
            exit(3);
        }
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
    pthread_t threads[MOST_THREADS];
    if (count != 3)
        return 2;
    load(arguments[1]);
    int workers = atoi(arguments[2]);
    for (int i = 0; i < PENSTOCK_CHANNELS * PENSTOCK_LEVELS; i++)
        table[i] = ((float)(i % PENSTOCK_LEVELS) - 116.0f) / 57.0f;
    while (workers >= 1 && workers <= MOST_THREADS && (letter = getchar()) != EOF) {
        target.table = letter == 'f' || letter == 'F' ? table : NULL;
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

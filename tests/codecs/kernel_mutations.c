/* Damaged JPEGs, and pixels in wrong places, through the kernel without Python: built with sanitizers, it must end
 * with 0.
 *
 * kernel_mutations COUNT SEED FILE...; prints how many JPEGs were done, of another kind, and failed; then how many
 * images of raw pixels were done and failed.
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

static int64_t extreme(void)
{
    int64_t values[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN, -1, 0, INT32_MAX, PENSTOCK_MOST_RESIZED, INT64_MAX};
    return values[below(sizeof values / sizeof *values)];
}

/* Mostly inside of an image of that size and often up to its end, often at another scale, and parts that reach outside
 * on every side. */
static penstock_view random_view(const penstock_target *target, size_t width, size_t height)
{
    size_t x = below(width), y = below(height);
    penstock_view view = {.x = (int64_t)x, .y = (int64_t)y};
    view.width = (int64_t)(below(2) ? width - x : 1 + below(width - x));
    view.height = (int64_t)(below(2) ? height - y : 1 + below(height - y));
    view.resized_width = target->width;
    view.resized_height = target->height;
    if (below(3) == 0) {
        view.resized_width = view.width;
        view.resized_height = view.height;
    } else if (below(2) == 0) {
        view.resized_width = 1 + (int64_t)below(90);
        view.resized_height = 1 + (int64_t)below(90);
    }
    if (below(3) > 0) {
        view.part_x = (int64_t)below((size_t)(view.resized_width + target->width + 4)) - target->width - 2;
        view.part_y = (int64_t)below((size_t)(view.resized_height + target->height + 4)) - target->height - 2;
    }
    int64_t *numbers = &view.x;
    if (below(12) == 0)
        numbers[below(8)] = extreme();
    return view;
}

static penstock_target random_target(const float *table)
{
    penstock_target target = {1 + (int)below(70), 1 + (int)below(50), below(2) ? table : NULL,
                              (int)below(256),    (int)below(2),      (int)below(2)};
    if (below(4) == 0)
        target.width = target.height = 1 + (int)below(6);
    return target;
}

/* Two at a time, so that memory is used again; says how the second one went: 0, or its status. */
static int try_jpeg(penstock_source seed, const float *table)
{
    unsigned char *copy = malloc(seed.size);
    memcpy(copy, seed.bytes, seed.size);
    size_t size = damage(copy, seed.size);
    unsigned char *bytes = malloc(size); /* exactly as large: reading past the end is seen */
    memcpy(bytes, copy, size);
    penstock_target target = random_target(table);
    penstock_source sources[2] = {{bytes, size}, {bytes, size}};
    penstock_view views[2] = {random_view(&target, 100, 80), random_view(&target, 110, 110)};
    uint8_t flips[2] = {(uint8_t)random_bits(), (uint8_t)random_bits()};
    penstock_failure failures[2];
    void *out = malloc(2 * penstock_sample_bytes(&target));
    size_t failed = penstock_decode_range(sources, views, flips, 2, &target, out, failures);
    free(out);
    free(bytes);
    free(copy);
    return failed > 0 && failures[failed - 1].position == 1 ? failures[failed - 1].status : 0;
}

/* Often the image ends where its buffer does, or a byte later. */
static penstock_place random_place(const penstock_source *buffers)
{
    penstock_place place = {(int64_t)below(2), 0, 1 + (int64_t)below(60), 1 + (int64_t)below(40)};
    int64_t size = (int64_t)buffers[place.buffer].size;
    int64_t room = size - place.width * place.height * PENSTOCK_CHANNELS;
    place.offset = room >= 0 && below(4) ? room + (int64_t)below(2) : (int64_t)below((size_t)size + 1);
    int64_t *numbers = &place.buffer;
    if (below(12) == 0)
        numbers[below(4)] = extreme();
    return place;
}

static size_t side(int64_t length)
{
    return length > 0 && length < 100 ? (size_t)length : 100;
}

static int try_pixels(const float *table)
{
    penstock_source buffers[2];
    for (int i = 0; i < 2; i++) {
        buffers[i].size = below(9000);
        buffers[i].bytes = calloc(buffers[i].size, 1);
    }
    penstock_target target = random_target(table);
    penstock_place places[2] = {random_place(buffers), random_place(buffers)};
    penstock_view views[2];
    for (int i = 0; i < 2; i++)
        views[i] = random_view(&target, side(places[i].width), side(places[i].height));
    uint8_t flips[2] = {(uint8_t)random_bits(), (uint8_t)random_bits()};
    penstock_failure failures[2];
    void *out = malloc(2 * penstock_sample_bytes(&target));
    size_t failed = penstock_pixels_range(buffers, 2, places, views, flips, 2, &target, out, failures);
    free(out);
    free((void *)buffers[0].bytes);
    free((void *)buffers[1].bytes);
    return failed > 0 && failures[failed - 1].position == 1;
}

int main(int count, char **arguments)
{
    float table[PENSTOCK_CHANNELS * PENSTOCK_LEVELS] = {0};
    long jpegs[3] = {0, 0, 0}, pixels[2] = {0, 0};
    if (count < 4)
        return 2;
    long tries = atol(arguments[1]);
    state = (uint64_t)atol(arguments[2]);
    size_t files = (size_t)(count - 3);
    penstock_source *seeds = calloc(files, sizeof *seeds);
    for (size_t i = 0; i < files; i++)
        seeds[i] = read_whole(arguments[3 + i]);
    for (long i = 0; i < tries; i++)
        jpegs[try_jpeg(seeds[below(files)], table)]++;
    for (long i = 0; i < tries; i++)
        pixels[try_pixels(table)]++;
    for (size_t i = 0; i < files; i++)
        free((void *)seeds[i].bytes);
    free(seeds);
    printf("%ld %ld %ld %ld %ld\n", jpegs[0], jpegs[PENSTOCK_OTHER], jpegs[PENSTOCK_FAILED], pixels[0], pixels[1]);
    return 0;
}

#include "writing.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <tmmintrin.h>
#endif

enum { CHANNELS = PENSTOCK_CHANNELS, LEVELS = PENSTOCK_LEVELS };

#if defined(__x86_64__) && defined(__GNUC__)
/* Five pixels at a time, with a byte more that is read of their neighbour and written over by the next ones. Returns
 * how many pixels were written; those at both ends of the row are left to the caller. */
__attribute__((target("ssse3"))) static int reverse_fives(uint8_t *restrict out, const uint8_t *restrict last,
                                                          int count)
{
    const __m128i order = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    int i = 0;
    for (; i + 5 < count; i += 5) {
        __m128i five = _mm_loadu_si128((const __m128i *)(last - CHANNELS * (i + 4) - 1));
        _mm_storeu_si128((__m128i *)(out + CHANNELS * i), _mm_shuffle_epi8(five, order));
    }
    return i;
}

static int reverse_most(uint8_t *out, const uint8_t *last, int count)
{
    return __builtin_cpu_supports("ssse3") ? reverse_fives(out, last, count) : 0;
}
#else
static int reverse_most(uint8_t *out, const uint8_t *last, int count)
{
    (void)out, (void)last, (void)count;
    return 0;
}
#endif

static void reverse_levels(uint8_t *out, const uint8_t *pixels, int count)
{
    const uint8_t *last = pixels + (ptrdiff_t)CHANNELS * (count - 1);
    for (int i = reverse_most(out, last, count); i < count; i++)
        memcpy(out + CHANNELS * i, last - CHANNELS * i, CHANNELS);
}

static void write_levels(uint8_t *out, const uint8_t *pixels, int count, int reversed)
{
    if (reversed)
        reverse_levels(out, pixels, count);
    else
        memcpy(out, pixels, (size_t)count * CHANNELS);
}

static void write_planes(float *out, ptrdiff_t plane, const uint8_t *pixels, int count, int reversed,
                         const float *table)
{
    float *restrict red = out, *restrict green = out + plane, *restrict blue = out + 2 * plane;
    const float *reds = table, *greens = table + LEVELS, *blues = table + 2 * LEVELS;
    ptrdiff_t step = reversed ? -CHANNELS : CHANNELS;
    if (reversed)
        pixels += (ptrdiff_t)CHANNELS * (count - 1);
    for (int i = 0; i < count; i++, pixels += step) {
        red[i] = reds[pixels[0]];
        green[i] = greens[pixels[1]];
        blue[i] = blues[pixels[2]];
    }
}

void penstock_write_pixels(const penstock_target *target, void *sample, int row, int column, const uint8_t *pixels,
                           int count, int reversed)
{
    ptrdiff_t at = (ptrdiff_t)row * target->width + column, plane = (ptrdiff_t)target->width * target->height;
    if (target->table == NULL)
        write_levels((uint8_t *)sample + at * CHANNELS, pixels, count, reversed);
    else
        write_planes((float *)sample + at, plane, pixels, count, reversed, target->table);
}

void penstock_write_fill(const penstock_target *target, void *sample)
{
    size_t plane = (size_t)target->width * (size_t)target->height;
    if (target->table == NULL) {
        memset(sample, target->fill, plane * CHANNELS);
        return;
    }
    for (int channel = 0; channel < CHANNELS; channel++) {
        float *out = (float *)sample + (size_t)channel * plane, value = target->table[channel * LEVELS + target->fill];
        for (size_t i = 0; i < plane; i++)
            out[i] = value;
    }
}

size_t penstock_sample_bytes(const penstock_target *target)
{
    size_t values = (size_t)target->width * (size_t)target->height * CHANNELS;
    return target->table == NULL ? values : values * sizeof(float);
}

#include "writing.h"

#include <string.h>

enum { CHANNELS = PENSTOCK_CHANNELS, LEVELS = PENSTOCK_LEVELS };

/* Four bytes at a time: the fourth is written over by the next pixel, and neither read nor written for the last. */
static void reverse_levels(uint8_t *restrict out, const uint8_t *restrict pixels, int count)
{
    const uint8_t *pixel = pixels + (ptrdiff_t)CHANNELS * (count - 1);
    memcpy(out, pixel, CHANNELS);
    for (int i = 1; i < count; i++) {
        uint32_t bytes;
        pixel -= CHANNELS;
        out += CHANNELS;
        memcpy(&bytes, pixel, sizeof bytes);
        if (i < count - 1)
            memcpy(out, &bytes, sizeof bytes);
        else
            memcpy(out, &bytes, CHANNELS);
    }
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
    for (int i = 0; i < count; i++) {
        const uint8_t *pixel = pixels + i * step;
        red[i] = reds[pixel[0]];
        green[i] = greens[pixel[1]];
        blue[i] = blues[pixel[2]];
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

void penstock_write_fill(const penstock_target *target, void *sample, int row, int column, int count)
{
    ptrdiff_t at = (ptrdiff_t)row * target->width + column, plane = (ptrdiff_t)target->width * target->height;
    if (target->table == NULL) {
        memset((uint8_t *)sample + at * CHANNELS, target->fill, (size_t)count * CHANNELS);
        return;
    }
    for (int channel = 0; channel < CHANNELS; channel++) {
        float *out = (float *)sample + channel * plane + at, value = target->table[channel * LEVELS + target->fill];
        for (int i = 0; i < count; i++)
            out[i] = value;
    }
}

size_t penstock_sample_bytes(const penstock_target *target)
{
    size_t values = (size_t)target->width * (size_t)target->height * CHANNELS;
    return target->table == NULL ? values : values * sizeof(float);
}

#include "resample.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Fixed point: a level has 64 parts between the two passes, so that only the last step rounds visibly. */
enum { STEP_SCALE = 2 * PENSTOCK_MIXED_SCALE, COLUMN_BITS = PENSTOCK_COLUMN_BITS, LEVEL_BITS = 6 };

void penstock_mix_two_rows(int16_t *restrict mixed, const uint8_t *restrict upper, const uint8_t *restrict lower,
                           int16_t share, size_t values)
{
    for (size_t i = 0; i < values; i++) {
        int16_t step = (int16_t)((lower[i] - upper[i]) * STEP_SCALE);
        mixed[i] = (int16_t)(upper[i] * PENSTOCK_MIXED_SCALE + (((int32_t)step * share) >> 16));
    }
}

void penstock_add_row(float *restrict sums, const uint8_t *restrict row, float weight, size_t values)
{
    for (size_t i = 0; i < values; i++)
        sums[i] += weight * (float)row[i];
}

void penstock_finish_sums(int16_t *restrict mixed, const float *restrict sums, size_t values)
{
    for (size_t i = 0; i < values; i++)
        mixed[i] = (int16_t)(sums[i] * PENSTOCK_MIXED_SCALE + 0.5f);
}

#ifdef __SSE2__
static __m128i two_columns(const int16_t *mixed, const penstock_tap *tap)
{
    const int16_t *left = mixed + 3 * (size_t)tap->first;
    __m128i first = _mm_loadl_epi64((const __m128i *)left);
    __m128i second = _mm_loadl_epi64((const __m128i *)(left + 3));
    __m128i sums = _mm_madd_epi16(_mm_unpacklo_epi16(first, second), _mm_set1_epi32((int)tap->pair));
    return _mm_srai_epi32(_mm_add_epi32(sums, _mm_set1_epi32(1 << (COLUMN_BITS + LEVEL_BITS - 1))),
                          COLUMN_BITS + LEVEL_BITS);
}

/* Four pixels at a time, as many as there are such; returns how many. */
static int mix_fours(uint8_t *restrict pixels, const int16_t *restrict mixed, const penstock_tap *first_tap,
                     ptrdiff_t step, int count)
{
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        const penstock_tap *tap = first_tap + i * step;
        __m128i first = _mm_packs_epi32(two_columns(mixed, tap), two_columns(mixed, tap + step));
        __m128i second = _mm_packs_epi32(two_columns(mixed, tap + 2 * step), two_columns(mixed, tap + 3 * step));
        uint32_t four[4];
        _mm_storeu_si128((__m128i *)four, _mm_packus_epi16(first, second));
        for (int j = 0; j < 4; j++) /* the fourth byte is written over by the next pixel */
            memcpy(pixels + 3 * (i + j), &four[j], sizeof four[j]);
    }
    return i;
}
#else
static int mix_fours(uint8_t *pixels, const int16_t *mixed, const penstock_tap *first_tap, ptrdiff_t step, int count)
{
    (void)pixels, (void)mixed, (void)first_tap, (void)step, (void)count;
    return 0;
}
#endif

static void mix_pixel(uint8_t *pixel, const int16_t *mixed, const penstock_tap *tap)
{
    const int16_t *left = mixed + 3 * (size_t)tap->first;
    int first = (int)(tap->pair & 0xFFFF), second = (int)(tap->pair >> 16);
    for (int channel = 0; channel < 3; channel++) {
        int32_t sum = left[channel] * first + left[channel + 3] * second;
        pixel[channel] = (uint8_t)((sum + (1 << (COLUMN_BITS + LEVEL_BITS - 1))) >> (COLUMN_BITS + LEVEL_BITS));
    }
}

#ifdef __SSE2__
/* The three channels side by side; each is added up in the same order as below, so it has the same bits. */
static void reduce_pixel(uint8_t *pixel, const int16_t *left, const float *weights, int taps)
{
    __m128 sums = _mm_setzero_ps();
    for (int tap = 0; tap < taps; tap++, left += 3) {
        __m128i four = _mm_loadl_epi64((const __m128i *)left);
        __m128 values = _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(four, four), 16));
        sums = _mm_add_ps(sums, _mm_mul_ps(_mm_set1_ps(weights[tap]), values));
    }
    sums = _mm_add_ps(_mm_mul_ps(sums, _mm_set1_ps(1.0f / PENSTOCK_MIXED_SCALE)), _mm_set1_ps(0.5f));
    __m128i levels = _mm_packs_epi32(_mm_cvttps_epi32(sums), _mm_setzero_si128());
    uint32_t bytes = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(levels, levels));
    memcpy(pixel, &bytes, 3);
}
#else
static uint8_t rounded(float sum)
{
    int level = (int)(sum * (1.0f / PENSTOCK_MIXED_SCALE) + 0.5f);
    return (uint8_t)(level > 255 ? 255 : level);
}

static void reduce_pixel(uint8_t *pixel, const int16_t *left, const float *weights, int taps)
{
    float red = 0.0f, green = 0.0f, blue = 0.0f;
    for (int tap = 0; tap < taps; tap++, left += 3) {
        red += weights[tap] * left[0];
        green += weights[tap] * left[1];
        blue += weights[tap] * left[2];
    }
    pixel[0] = rounded(red);
    pixel[1] = rounded(green);
    pixel[2] = rounded(blue);
}
#endif

static void mix_pixels(uint8_t *restrict pixels, const int16_t *restrict mixed, const penstock_axis *axis)
{
    const penstock_tap *first = axis->reversed ? axis->taps + axis->count - 1 : axis->taps;
    ptrdiff_t step = axis->reversed ? -1 : 1;
    for (int i = mix_fours(pixels, mixed, first, step, axis->count); i < axis->count; i++)
        mix_pixel(pixels + 3 * i, mixed, first + i * step);
}

static void reduce_pixels(uint8_t *restrict pixels, const int16_t *restrict mixed, const penstock_axis *axis)
{
    for (int i = 0; i < axis->count; i++, pixels += 3) {
        int position = axis->reversed ? axis->count - 1 - i : i;
        const float *weights = axis->weights + (size_t)position * (size_t)axis->most_taps;
        reduce_pixel(pixels, mixed + 3 * (size_t)axis->taps[position].first, weights, axis->taps[position].taps);
    }
}

void penstock_mix_columns(uint8_t *pixels, const int16_t *mixed, const penstock_axis *axis)
{
    if (axis->reducing)
        reduce_pixels(pixels, mixed, axis);
    else
        mix_pixels(pixels, mixed, axis);
}

#include "plane_side.h"

#include <string.h>

#include "wide.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { ROW_STEP = PENSTOCK_ROW_STEP, COLUMN_STEP = PENSTOCK_COLUMN_STEP, FINISHED_STEP = PENSTOCK_FINISHED_STEP };
enum { ROW_SHIFT = PENSTOCK_WEIGHT_BITS - PENSTOCK_ROW_BITS, ROW_HALF = 1 << (ROW_SHIFT - 1) };
enum { COLUMN_SHIFT = PENSTOCK_WEIGHT_BITS + PENSTOCK_ROW_BITS - PENSTOCK_FINISHED_BITS };
enum { COLUMN_HALF = 1 << (COLUMN_SHIFT - 1) };

static void mix_plainly(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights, int taps,
                        int width)
{
    for (int i = 0; i < width; i++) {
        int32_t sum = ROW_HALF;
        for (int tap = 0; tap < taps; tap++)
            sum += lines[tap][i] * weights[tap];
        mixed[i] = (int16_t)(sum >> ROW_SHIFT);
    }
}

#ifdef __SSE2__
static int two_weights(const int16_t *weights)
{
    int32_t both;
    memcpy(&both, weights, sizeof both);
    return both;
}

static inline void mix_sixteen(int16_t *mixed, const uint8_t *const *lines, const int16_t *weights, int taps, int i)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i a = _mm_set1_epi32(ROW_HALF), b = a, c = a, d = a;
    for (int tap = 0; tap < taps; tap += ROW_STEP) {
        __m128i weight = _mm_set1_epi32(two_weights(weights + tap));
        __m128i upper = _mm_loadu_si128((const __m128i *)(lines[tap] + i));
        __m128i lower = _mm_loadu_si128((const __m128i *)(lines[tap + 1] + i));
        __m128i left = _mm_unpacklo_epi8(upper, lower), right = _mm_unpackhi_epi8(upper, lower);
        a = _mm_add_epi32(a, _mm_madd_epi16(_mm_unpacklo_epi8(left, zero), weight));
        b = _mm_add_epi32(b, _mm_madd_epi16(_mm_unpackhi_epi8(left, zero), weight));
        c = _mm_add_epi32(c, _mm_madd_epi16(_mm_unpacklo_epi8(right, zero), weight));
        d = _mm_add_epi32(d, _mm_madd_epi16(_mm_unpackhi_epi8(right, zero), weight));
    }
    __m128i first = _mm_packs_epi32(_mm_srai_epi32(a, ROW_SHIFT), _mm_srai_epi32(b, ROW_SHIFT));
    __m128i second = _mm_packs_epi32(_mm_srai_epi32(c, ROW_SHIFT), _mm_srai_epi32(d, ROW_SHIFT));
    _mm_storeu_si128((__m128i *)(mixed + i), first);
    _mm_storeu_si128((__m128i *)(mixed + i + 8), second);
}

static void mix_sixteens(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights, int taps,
                         int width)
{
    if (width < 16) {
        mix_plainly(mixed, lines, weights, taps, width);
        return;
    }
    for (int i = 0; i + 16 <= width; i += 16)
        mix_sixteen(mixed, lines, weights, taps, i);
    if (width % 16) /* some of the last sixteen once more */
        mix_sixteen(mixed, lines, weights, taps, width - 16);
}

/* Values i and i + 1, each as two sums that are still to be added. */
static inline __m128i two_columns(const int16_t *mixed, const penstock_side *columns, int i, int taps)
{
    const int16_t *weights = columns->weights + (size_t)i * (size_t)taps;
    const int16_t *left = mixed + columns->first[i], *right = mixed + columns->first[i + 1];
    __m128i sums = _mm_setzero_si128();
    for (int tap = 0; tap < taps; tap += COLUMN_STEP, weights += 2 * COLUMN_STEP) {
        __m128i both = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(left + tap)),
                                          _mm_loadl_epi64((const __m128i *)(right + tap)));
        sums = _mm_add_epi32(sums, _mm_madd_epi16(both, _mm_loadu_si128((const __m128i *)weights)));
    }
    return sums;
}

static inline __m128i four_columns(const int16_t *mixed, const penstock_side *columns, int i, int taps)
{
    __m128 first = _mm_castsi128_ps(two_columns(mixed, columns, i, taps));
    __m128 second = _mm_castsi128_ps(two_columns(mixed, columns, i + 2, taps));
    __m128i even = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0)));
    __m128i odd = _mm_castps_si128(_mm_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1)));
    __m128i sums = _mm_add_epi32(_mm_add_epi32(even, odd), _mm_set1_epi32(COLUMN_HALF));
    return _mm_srai_epi32(sums, COLUMN_SHIFT);
}

static inline void finish_eights(int16_t *restrict finished, const int16_t *restrict mixed,
                                 const penstock_side *columns, int taps)
{
    for (int i = 0; i < columns->count; i += FINISHED_STEP) {
        __m128i first = four_columns(mixed, columns, i, taps), second = four_columns(mixed, columns, i + 4, taps);
        _mm_storeu_si128((__m128i *)(finished + i), _mm_packs_epi32(first, second));
    }
}

/* Up to a factor of three there are four taps, and the compiler leaves the inner loop out. */
static void finish_narrowly(int16_t *restrict finished, const int16_t *restrict mixed, const penstock_side *columns)
{
    if (columns->taps == COLUMN_STEP)
        finish_eights(finished, mixed, columns, COLUMN_STEP);
    else
        finish_eights(finished, mixed, columns, columns->taps);
}
#else
static void mix_sixteens(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights, int taps,
                         int width)
{
    mix_plainly(mixed, lines, weights, taps, width);
}

static void finish_narrowly(int16_t *restrict finished, const int16_t *restrict mixed, const penstock_side *columns)
{
    int blocks = columns->taps / COLUMN_STEP;
    for (int i = 0; i < columns->count; i++) {
        const int16_t *weights = columns->weights + (i / 2 * 2 * blocks + i % 2) * COLUMN_STEP;
        int32_t sum = COLUMN_HALF;
        for (int tap = 0; tap < columns->taps; tap++)
            sum += mixed[columns->first[i] + tap] * weights[tap / COLUMN_STEP * 2 * COLUMN_STEP + tap % COLUMN_STEP];
        finished[i] = (int16_t)(sum >> COLUMN_SHIFT);
    }
}
#endif

/* The same with registers that are twice as wide. */
#ifdef PENSTOCK_WIDE
PENSTOCK_WIDE static inline void mix_thirty_two(int16_t *mixed, const uint8_t *const *lines, const int16_t *weights,
                                                int taps, int i)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i a = _mm256_set1_epi32(ROW_HALF), b = a, c = a, d = a;
    for (int tap = 0; tap < taps; tap += ROW_STEP) {
        __m256i weight = _mm256_set1_epi32(two_weights(weights + tap));
        __m256i upper = _mm256_loadu_si256((const __m256i *)(lines[tap] + i));
        __m256i lower = _mm256_loadu_si256((const __m256i *)(lines[tap + 1] + i));
        __m256i left = _mm256_unpacklo_epi8(upper, lower), right = _mm256_unpackhi_epi8(upper, lower);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(left, zero), weight));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(left, zero), weight));
        c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(right, zero), weight));
        d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(right, zero), weight));
    }
    __m256i first = _mm256_packs_epi32(_mm256_srai_epi32(a, ROW_SHIFT), _mm256_srai_epi32(b, ROW_SHIFT));
    __m256i second = _mm256_packs_epi32(_mm256_srai_epi32(c, ROW_SHIFT), _mm256_srai_epi32(d, ROW_SHIFT));
    /* Both halves of a register went their own way: put them in order again. */
    _mm256_storeu_si256((__m256i *)(mixed + i), _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256((__m256i *)(mixed + i + 16), _mm256_permute2x128_si256(first, second, 0x31));
}

PENSTOCK_WIDE static inline void mix_thirty_twos(int16_t *restrict mixed, const uint8_t *const *lines,
                                                 const int16_t *weights, int taps, int width)
{
    for (int i = 0; i + 32 <= width; i += 32)
        mix_thirty_two(mixed, lines, weights, taps, i);
    if (width % 32)
        mix_thirty_two(mixed, lines, weights, taps, width - 32);
}

/* Few taps are the rule, and for these the compiler leaves the inner loop out. */
PENSTOCK_WIDE static void mix_widely(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights,
                                     int taps, int width)
{
    if (taps == ROW_STEP)
        mix_thirty_twos(mixed, lines, weights, ROW_STEP, width);
    else if (taps == 2 * ROW_STEP)
        mix_thirty_twos(mixed, lines, weights, 2 * ROW_STEP, width);
    else
        mix_thirty_twos(mixed, lines, weights, taps, width);
}

PENSTOCK_WIDE static inline __m256i eight_inputs(const int16_t *lower, const int16_t *upper)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)lower)),
                                   _mm_loadu_si128((const __m128i *)upper), 1);
}

/* Values i to i + 3 of four taps, each as two sums that are still to be added. */
PENSTOCK_WIDE static inline __m256i four_sums(const int16_t *mixed, const penstock_side *columns, int i)
{
    const int32_t *first = columns->first + i;
    __m256i weights = _mm256_loadu_si256((const __m256i *)(columns->weights + (size_t)i * COLUMN_STEP));
    __m256i orders = _mm256_loadu_si256((const __m256i *)(columns->orders + (size_t)i / 2 * PENSTOCK_ORDER_BYTES));
    __m256i inputs = eight_inputs(mixed + first[0], mixed + first[2]);
    return _mm256_madd_epi16(_mm256_shuffle_epi8(inputs, orders), weights);
}

/* Values i to i + 7, in the order 0 1 4 5 and 2 3 6 7. */
PENSTOCK_WIDE static inline __m256i eight_values(const int16_t *mixed, const penstock_side *columns, int i)
{
    __m256i sums = _mm256_hadd_epi32(four_sums(mixed, columns, i), four_sums(mixed, columns, i + 4));
    return _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(COLUMN_HALF)), COLUMN_SHIFT);
}

PENSTOCK_WIDE static void finish_widely(int16_t *restrict finished, const int16_t *restrict mixed,
                                        const penstock_side *columns)
{
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int i = 0;
    for (; i + 2 * FINISHED_STEP <= columns->count; i += 2 * FINISHED_STEP) {
        __m256i values = _mm256_packs_epi32(eight_values(mixed, columns, i),
                                            eight_values(mixed, columns, i + FINISHED_STEP));
        _mm256_storeu_si256((__m256i *)(finished + i), _mm256_permutevar8x32_epi32(values, in_order));
    }
    for (; i < columns->count; i += FINISHED_STEP) {
        __m256i values = _mm256_permute4x64_epi64(eight_values(mixed, columns, i), _MM_SHUFFLE(3, 1, 2, 0));
        _mm_storeu_si128((__m128i *)(finished + i),
                         _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1)));
    }
}
#endif

void penstock_mix_lines(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights, int taps,
                        int width)
{
#ifdef PENSTOCK_WIDE
    if (penstock_is_wide() && width >= 32) {
        mix_widely(mixed, lines, weights, taps, width);
        return;
    }
#endif
    mix_sixteens(mixed, lines, weights, taps, width);
}

void penstock_finish_line(int16_t *restrict finished, const int16_t *restrict mixed, const penstock_side *columns)
{
#ifdef PENSTOCK_WIDE
    if (penstock_is_wide() && columns->taps == COLUMN_STEP) {
        finish_widely(finished, mixed, columns);
        return;
    }
#endif
    finish_narrowly(finished, mixed, columns);
}

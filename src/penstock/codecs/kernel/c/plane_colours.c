#include "plane_colours.h"

#include <string.h>

#include "plane_side.h"
#include "wide.h"

enum { SHIFT = PENSTOCK_MATRIX_BITS + PENSTOCK_FINISHED_BITS, CHROMA_ZERO = 128 };

/* What is added to each colour, with the half that rounds. */
typedef struct {
    int32_t red, green, blue;
} shifts;

static shifts shifts_of(const penstock_matrix *matrix)
{
    int32_t all = (1 << (SHIFT - 1)) - matrix->black * matrix->luma * (1 << PENSTOCK_FINISHED_BITS);
    int32_t zero = CHROMA_ZERO << PENSTOCK_FINISHED_BITS;
    return (shifts){all - zero * matrix->red_of_v, all - zero * (matrix->green_of_u + matrix->green_of_v),
                    all - zero * matrix->blue_of_u};
}

static uint8_t level(int32_t sum)
{
    sum >>= SHIFT;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void write_plainly(uint8_t *restrict pixels, const penstock_row *row, const penstock_matrix *matrix,
                          const shifts *shift, int begin)
{
    for (int i = begin; i < row->count; i++) {
        int32_t luma = row->y[i] * matrix->luma, u = row->u[i], v = row->v[i];
        pixels[3 * i] = level(luma + v * matrix->red_of_v + shift->red);
        pixels[3 * i + 1] = level(luma + u * matrix->green_of_u + v * matrix->green_of_v + shift->green);
        pixels[3 * i + 2] = level(luma + u * matrix->blue_of_u + shift->blue);
    }
}

#ifdef PENSTOCK_WIDE
static int two_numbers(int low, int high)
{
    return (int)((uint32_t)(uint16_t)high << 16 | (uint16_t)low);
}

/* Sixteen of low × one number + high × the other. */
PENSTOCK_WIDE static inline __m256i weighed(__m256i low, __m256i high, int numbers, __m256i first, __m256i second)
{
    __m256i weights = _mm256_set1_epi32(numbers);
    first = _mm256_add_epi32(first, _mm256_madd_epi16(_mm256_unpacklo_epi16(low, high), weights));
    second = _mm256_add_epi32(second, _mm256_madd_epi16(_mm256_unpackhi_epi16(low, high), weights));
    return _mm256_packs_epi32(_mm256_srai_epi32(first, SHIFT), _mm256_srai_epi32(second, SHIFT));
}

PENSTOCK_WIDE static inline __m256i green_of(__m256i y, __m256i u, __m256i v, const penstock_matrix *matrix, int shift)
{
    const __m256i zero = _mm256_setzero_si256(), add = _mm256_set1_epi32(shift);
    const __m256i weights = _mm256_set1_epi32(two_numbers(matrix->green_of_v, 0));
    __m256i first = _mm256_add_epi32(add, _mm256_madd_epi16(_mm256_unpacklo_epi16(v, zero), weights));
    __m256i second = _mm256_add_epi32(add, _mm256_madd_epi16(_mm256_unpackhi_epi16(v, zero), weights));
    return weighed(y, u, two_numbers(matrix->luma, matrix->green_of_u), first, second);
}

/* Four pixels of four bytes each, the last of which is left out; four bytes more than that are written. */
PENSTOCK_WIDE static inline void write_four(uint8_t *pixels, __m128i four)
{
    const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    _mm_storeu_si128((__m128i *)pixels, _mm_shuffle_epi8(four, order));
}

/* Sixteen pixels from i on; four bytes more than they have are written. */
PENSTOCK_WIDE static inline void write_sixteen(uint8_t *pixels, const penstock_row *row, int i,
                                               const penstock_matrix *matrix, const shifts *shift)
{
    const __m256i add_red = _mm256_set1_epi32(shift->red), add_blue = _mm256_set1_epi32(shift->blue);
    int of_red = two_numbers(matrix->luma, matrix->red_of_v), of_blue = two_numbers(matrix->luma, matrix->blue_of_u);
    __m256i y = _mm256_loadu_si256((const __m256i *)(row->y + i));
    __m256i u = _mm256_loadu_si256((const __m256i *)(row->u + i));
    __m256i v = _mm256_loadu_si256((const __m256i *)(row->v + i));
    __m256i red = weighed(y, v, of_red, add_red, add_red), blue = weighed(y, u, of_blue, add_blue, add_blue);
    __m256i green = green_of(y, u, v, matrix, shift->green);
    __m256i red_blue = _mm256_packus_epi16(red, blue), greens = _mm256_packus_epi16(green, green);
    __m256i red_green = _mm256_unpacklo_epi8(red_blue, greens);
    __m256i blue_blue = _mm256_unpackhi_epi8(red_blue, red_blue);
    __m256i even = _mm256_unpacklo_epi16(red_green, blue_blue), odd = _mm256_unpackhi_epi16(red_green, blue_blue);
    write_four(pixels, _mm256_castsi256_si128(even));
    write_four(pixels + 12, _mm256_castsi256_si128(odd));
    write_four(pixels + 24, _mm256_extracti128_si256(even, 1));
    write_four(pixels + 36, _mm256_extracti128_si256(odd, 1));
}

/* Sixteen pixels at a time, while two more follow for what is written too much; the last, some of which may be there
 * already, by way of other memory. Returns how many are written: all, or none of fewer than sixteen. */
PENSTOCK_WIDE static int write_widely(uint8_t *restrict pixels, const penstock_row *row, const penstock_matrix *matrix,
                                      const shifts *shift)
{
    if (row->count < 16)
        return 0;
    int i = 0;
    for (; i + 16 + 2 <= row->count; i += 16)
        write_sixteen(pixels + 3 * i, row, i, matrix, shift);
    for (uint8_t last[3 * 16 + 4]; i < row->count; i += 16) {
        int from = i + 16 <= row->count ? i : row->count - 16;
        write_sixteen(last, row, from, matrix, shift);
        memcpy(pixels + 3 * from, last, 3 * 16);
    }
    return row->count;
}
#endif

void penstock_write_colours(uint8_t *restrict pixels, const penstock_row *row, const penstock_matrix *matrix)
{
    const shifts shift = shifts_of(matrix);
    int written = 0;
#ifdef PENSTOCK_WIDE
    if (penstock_is_wide())
        written = write_widely(pixels, row, matrix, &shift);
#endif
    write_plainly(pixels, row, matrix, &shift, written);
}

/* Sums before and after the products of Winograd's convolution, for polynomials that are looked at in 0, ±NEAR, ±FAR and
 * at infinity. A few channels at a time go through memory that stays in the first cache, and the compiler makes wide
 * instructions of the loops over them. */
#include "winograd.h"

#include <string.h>

#define SIDE PENSTOCK_PIECE
#define ANSWERS PENSTOCK_ANSWERS
#define SOME 16 /* channels at a time */
#define NEAR 0.75f
#define FAR 1.5f
#define NEAR2 (NEAR * NEAR)
#define FAR2 (FAR * FAR)

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_SEVERAL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_SEVERAL
#endif

typedef float some[SOME];

/* One direction of a piece: six values of six pixels, `step` apart. */
static inline void to_values(const some *restrict in, int step, some *restrict out)
{
    for (int c = 0; c < SOME; c++) {
        float x0 = in[0][c], x1 = in[step][c], x2 = in[2 * step][c];
        float x3 = in[3 * step][c], x4 = in[4 * step][c], x5 = in[5 * step][c];
        float near_even = x4 - FAR2 * x2, near_odd = NEAR * x3 - NEAR * FAR2 * x1;
        float far_even = x4 - NEAR2 * x2, far_odd = FAR * x3 - FAR * NEAR2 * x1;
        out[0][c] = NEAR2 * FAR2 * x0 - (NEAR2 + FAR2) * x2 + x4;
        out[step][c] = near_even + near_odd;
        out[2 * step][c] = near_even - near_odd;
        out[3 * step][c] = far_even + far_odd;
        out[4 * step][c] = far_even - far_odd;
        out[5 * step][c] = NEAR2 * FAR2 * x1 - (NEAR2 + FAR2) * x3 + x5;
    }
}

/* One direction of products: four answers of six, which lie `step` apart; answers lie `out_step` apart. */
static inline void to_answers(const some *restrict in, int step, some *restrict out, int out_step)
{
    for (int c = 0; c < SOME; c++) {
        float near_sum = in[step][c] + in[2 * step][c], near_rest = in[step][c] - in[2 * step][c];
        float far_sum = in[3 * step][c] + in[4 * step][c], far_rest = in[3 * step][c] - in[4 * step][c];
        out[0][c] = in[0][c] + near_sum + far_sum;
        out[out_step][c] = NEAR * near_rest + FAR * far_rest;
        out[2 * out_step][c] = NEAR2 * near_sum + FAR2 * far_sum;
        out[3 * out_step][c] = NEAR * NEAR2 * near_rest + FAR * FAR2 * far_rest + in[5 * step][c];
    }
}

static inline void take(float *into, const float *from, ptrdiff_t count)
{
    if (count == SOME)
        memcpy(into, from, SOME * sizeof(float));
    else
        memcpy(into, from, (size_t)count * sizeof(float));
}

FOR_SEVERAL
static void piece_values(const penstock_map *image, ptrdiff_t y, ptrdiff_t x, float *values, ptrdiff_t plane)
{
    some pixels[SIDE * SIDE], half[SIDE * SIDE], made[SIDE * SIDE];
    memset(pixels, 0, sizeof pixels);
    for (ptrdiff_t channel = 0; channel < image->channels; channel += SOME) {
        ptrdiff_t count = image->channels - channel < SOME ? image->channels - channel : SOME;
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                if (y + i >= 0 && y + i < image->height && x + j >= 0 && x + j < image->width)
                    take(pixels[i * SIDE + j],
                         image->floats + (y + i) * image->line + (x + j) * image->place + channel, count);
        for (int j = 0; j < SIDE; j++)
            to_values(pixels + j, SIDE, half + j);
        for (int i = 0; i < SIDE; i++)
            to_values(half + i * SIDE, 1, made + i * SIDE);
        for (int k = 0; k < SIDE * SIDE; k++)
            take(values + k * plane + channel, made[k], count);
    }
}

void penstock_winograd_values(const penstock_map *image, ptrdiff_t first, ptrdiff_t rows, penstock_planes values)
{
    ptrdiff_t across = (image->width + ANSWERS - 1) / ANSWERS;
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t piece = 0; piece < across; piece++)
            piece_values(image, (first + row) * ANSWERS - 1, piece * ANSWERS - 1,
                         values.floats + (row * across + piece) * image->channels, values.plane);
}

FOR_SEVERAL
static void piece_answers(const float *products, ptrdiff_t plane, const float *bias, ptrdiff_t y, ptrdiff_t x,
                          const penstock_map *out)
{
    some taken[SIDE * SIDE], half[ANSWERS * SIDE], made[ANSWERS * ANSWERS], added;
    memset(taken, 0, sizeof taken);
    memset(added, 0, sizeof added);
    for (ptrdiff_t channel = 0; channel < out->channels; channel += SOME) {
        ptrdiff_t count = out->channels - channel < SOME ? out->channels - channel : SOME;
        for (int k = 0; k < SIDE * SIDE; k++)
            take(taken[k], products + k * plane + channel, count);
        if (bias != NULL)
            take(added, bias + channel, count);
        for (int j = 0; j < SIDE; j++)
            to_answers(taken + j, SIDE, half + j, SIDE);
        for (int i = 0; i < ANSWERS; i++)
            to_answers(half + i * SIDE, 1, made + i * ANSWERS, 1);
        for (int i = 0; i < ANSWERS && y + i < out->height; i++)
            for (int j = 0; j < ANSWERS && x + j < out->width; j++) {
                float *answer = made[i * ANSWERS + j];
                for (int c = 0; c < SOME; c++)
                    answer[c] += added[c];
                take(out->floats + (y + i) * out->line + (x + j) * out->place + channel, answer, count);
            }
    }
}

void penstock_winograd_answers(penstock_planes products, const float *bias, ptrdiff_t first, ptrdiff_t rows,
                               const penstock_map *out)
{
    ptrdiff_t across = (out->width + ANSWERS - 1) / ANSWERS;
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t piece = 0; piece < across; piece++)
            piece_answers(products.floats + (row * across + piece) * out->channels, products.plane, bias,
                          (first + row) * ANSWERS, piece * ANSWERS, out);
}

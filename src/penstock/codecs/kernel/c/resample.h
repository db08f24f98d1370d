/* Changing sizes along one axis at a time.
 *
 * Up to a factor of two an output position is the bilinear mean of two input positions, with half-pixel centres.
 * Above that it is the mean of all that it covers, weighted by a triangle that is twice as wide as the output
 * position (as in Pillow). Each axis decides for itself. Positions outside the crop are never looked at.
 */
#ifndef PENSTOCK_RESAMPLE_H
#define PENSTOCK_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

enum { PENSTOCK_MIXED_SCALE = 64, PENSTOCK_SHARE_SCALE = 32768 };
/* Mixed rows are read four values at a time, and pixels written four bytes: both need more room than they fill. */
enum { PENSTOCK_MIXED_PADDING = 8, PENSTOCK_PIXEL_PADDING = 1 };

typedef struct {
    int32_t first;  /* the first input position, counted from the start of the window */
    int32_t taps;   /* how many from there */
    int16_t share;  /* bilinear: what the second tap has of PENSTOCK_SHARE_SCALE */
} penstock_tap;

typedef struct {
    int reducing;       /* whether `weights` counts, else `share` */
    int reversed;       /* whether the last output position is written first */
    int count;          /* output positions */
    int most_taps;
    penstock_tap *taps; /* one for each output position */
    float *weights;     /* most_taps for each output position */
} penstock_axis;

/* What an axis needs: `length` input positions (not whole ones after reduced decoding) become `count`. */
int penstock_axis_is_reducing(double length, int count);
int penstock_axis_most_taps(double length, int count);

/* Fill an axis over a window of `window` input positions in which the crop begins at `start`. */
void penstock_fill_axis(penstock_axis *axis, double start, double length, int window);

/* Two rows of `values` bytes become one row in units of 1/64 level. */
void penstock_mix_two_rows(int16_t *mixed, const uint8_t *upper, const uint8_t *lower, int16_t share, size_t values);

/* sums += weight × row; and sums to units of 1/64 level. */
void penstock_add_row(float *sums, const uint8_t *row, float weight, size_t values);
void penstock_finish_sums(int16_t *mixed, const float *sums, size_t values);

/* A mixed row becomes `axis->count` RGB pixels. */
void penstock_mix_columns(uint8_t *pixels, const int16_t *mixed, const penstock_axis *axis);

#endif

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

enum { PENSTOCK_MIXED_SCALE = 64, PENSTOCK_SHARE_SCALE = 32768, PENSTOCK_COLUMN_BITS = 14 };
/* Mixed rows are read four values at a time, and pixels written four bytes: both need more room than they fill. */
enum { PENSTOCK_MIXED_PADDING = 8, PENSTOCK_PIXEL_PADDING = 1 };

/* Memory that is kept from image to image and only grows. */
typedef struct {
    void *memory;
    size_t bytes;
} penstock_buffer;

/* Where a crop lies along one axis of the pixels that are there, which after reduced decoding need not be at whole
 * ones: those from `first` to `end` have a part in it, and it begins `start` after the first. */
typedef struct {
    int first, end;
    double start, length;
} penstock_span;

typedef struct {
    int32_t first;  /* the first input position, counted from the first that the axis looks at */
    int32_t taps;   /* how many from there */
    int16_t share;  /* bilinear: what the second tap has of PENSTOCK_SHARE_SCALE */
    uint32_t pair;  /* the same for columns: what both taps have of 2^PENSTOCK_COLUMN_BITS, the second one above */
} penstock_tap;

/* The output positions of one axis: `lead` of fill, then `count` of the image, then fill again. */
typedef struct {
    int lead, count;
    int shown;          /* the first position of the whole resized axis that is made */
    int plain;          /* whether nothing is resampled: then there are no taps */
    int reducing;       /* whether `weights` counts, else `share` */
    int reversed;       /* whether the last output position is written first */
    int most_taps;
    int first, end;     /* the input positions that are looked at, counted like those of the span */
    penstock_tap *taps; /* one for each output position */
    float *weights;     /* most_taps for each output position */
    penstock_buffer tap_memory, weight_memory;
} penstock_axis;

/* Decide how `resized` positions come from a span, of which the output shows `size` from `part` on. */
void penstock_plan_axis(penstock_axis *axis, const penstock_span *span, int64_t resized, int64_t part, int size);

/* What each output position looks at; `taps` and `weights` have room. */
void penstock_fill_axis(penstock_axis *axis, const penstock_span *span, int64_t resized);

/* Two rows of `values` bytes become one row in units of 1/64 level. */
void penstock_mix_two_rows(int16_t *mixed, const uint8_t *upper, const uint8_t *lower, int16_t share, size_t values);

/* sums += weight × row; and sums to units of 1/64 level. */
void penstock_add_row(float *sums, const uint8_t *row, float weight, size_t values);
void penstock_finish_sums(int16_t *mixed, const float *sums, size_t values);

/* A mixed row becomes `axis->count` RGB pixels. */
void penstock_mix_columns(uint8_t *pixels, const int16_t *mixed, const penstock_axis *axis);

#endif

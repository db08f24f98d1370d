/* What is done before and after the products of Winograd's convolution: pieces of 6 × 6 px become 36 values for each
 * channel, and 36 products for each channel become 4 × 4 answers. See winograd.py for the whole of it. */
#ifndef PENSTOCK_WINOGRAD_H
#define PENSTOCK_WINOGRAD_H

#include <stddef.h>

#define PENSTOCK_PIECE 6
#define PENSTOCK_ANSWERS 4

/* Floats that lie height × width × channels, channels side by side; the strides of the others are in floats. */
typedef struct {
    float *floats;
    ptrdiff_t line, place;
    ptrdiff_t height, width, channels;
} penstock_map;

/* Floats that lie 36 × pieces × channels, pieces and channels side by side; `plane` is from one of the 36 to the next. */
typedef struct {
    float *floats;
    ptrdiff_t plane;
} penstock_planes;

/* The values of so many rows of pieces from `first` on. Beyond the border are zeros. */
void penstock_winograd_values(const penstock_map *image, ptrdiff_t first, ptrdiff_t rows, penstock_planes values);

/* The answers of so many rows of pieces from `first` on; a bias for each channel is added, or none if it is NULL. */
void penstock_winograd_answers(penstock_planes products, const float *bias, ptrdiff_t first, ptrdiff_t rows,
                               const penstock_map *out);

#endif

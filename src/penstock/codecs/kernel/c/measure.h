/* Sums over the pixels of JPEGs, for channel means and deviations. Plain C, knows no Python. */
#ifndef PENSTOCK_MEASURE_H
#define PENSTOCK_MEASURE_H

#include "kernel.h"

/* How many pixels of the decoded image there are, their sum and the sum of their squares for each channel.
 * No pixels: the image is of another kind, too small, or damaged. */
typedef struct {
    uint64_t pixels, sums[PENSTOCK_CHANNELS], squares[PENSTOCK_CHANNELS];
} penstock_sums;

/* Measure JPEGs at half their size; those with a side below `least_side` are left out. */
void penstock_measure_halved(const penstock_source *sources, size_t count, unsigned least_side, penstock_sums *sums);

#endif

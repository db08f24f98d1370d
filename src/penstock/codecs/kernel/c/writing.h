/* Finished rows into a sample. Rows and columns are those of the sample, after its flips. */
#ifndef PENSTOCK_WRITING_H
#define PENSTOCK_WRITING_H

#include "kernel.h"

/* Write `count` pixels from a column on, the last one first when they are reversed. */
void penstock_write_pixels(const penstock_target *target, void *sample, int row, int column, const uint8_t *pixels,
                           int count, int reversed);

/* Write the fill everywhere. */
void penstock_write_fill(const penstock_target *target, void *sample);

#endif

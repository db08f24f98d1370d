/* Finished rows of the stored image into the upright output. */
#ifndef PENSTOCK_WRITING_H
#define PENSTOCK_WRITING_H

#include "kernel.h"
#include "orientation.h"

/* Where in the output the rows and columns of the stored image go, in elements. Columns come in the order in which
 * they are written, so that most rows are one piece. */
typedef struct {
    ptrdiff_t start, row_step, column_step;
    int columns_reversed;
} penstock_placement;

penstock_placement penstock_place(const penstock_target *target, penstock_turn turn, unsigned flips);

/* Write row number `row` of the stored axes, which has `count` pixels. */
void penstock_write_row(const penstock_target *target, penstock_placement where, void *out, int row,
                        const uint8_t *pixels, int count);

#endif

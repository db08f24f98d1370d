/* Rows of YUV to rows of RGB. */
#ifndef PENSTOCK_PLANE_COLOURS_H
#define PENSTOCK_PLANE_COLOURS_H

#include "planes.h"

/* One row of each plane, with the parts of a level that plane_side.h says. */
typedef struct {
    const int16_t *y, *u, *v;
    int count;
} penstock_row;

/* Write three bytes for each pixel. */
void penstock_write_colours(uint8_t *restrict pixels, const penstock_row *row, const penstock_matrix *matrix);

#endif

/* How an image is stored beside how it is shown. */
#ifndef PENSTOCK_ORIENTATION_H
#define PENSTOCK_ORIENTATION_H

#include "kernel.h"

/* A stored image becomes upright by transposing it, then reversing columns, then reversing rows. */
typedef struct {
    int transposed, columns_reversed, rows_reversed;
} penstock_turn;

/* The turn that the EXIF block before the first frame asks for; none where it is absent or damaged. */
penstock_turn penstock_read_turn(const unsigned char *bytes, size_t size);

/* A crop of the upright image (of that size) in stored axes. */
penstock_crop penstock_stored_crop(penstock_crop upright, int upright_width, int upright_height, penstock_turn turn);

#endif

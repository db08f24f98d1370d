/* How an image is stored beside how it is shown. */
#ifndef PENSTOCK_ORIENTATION_H
#define PENSTOCK_ORIENTATION_H

#include <stddef.h>
#include <stdint.h>

/* A stored image becomes upright by transposing it, then reversing columns, then reversing rows. */
typedef struct {
    int transposed, columns_reversed, rows_reversed;
} penstock_turn;

typedef struct {
    int x, y, width, height;
} penstock_area;

/* The turn that the EXIF block before the first frame asks for; none where it is absent or damaged. */
penstock_turn penstock_read_turn(const unsigned char *bytes, size_t size);

int penstock_is_upright(penstock_turn turn);

/* An area of the upright image (of that size) in stored axes. */
penstock_area penstock_stored_area(penstock_area upright, int upright_width, int upright_height, penstock_turn turn);

/* Put row number `row` of a stored area into the upright one, whose pixels follow one another. */
void penstock_turn_row(uint8_t *upright, const uint8_t *pixels, int row, penstock_area stored, penstock_turn turn);

#endif

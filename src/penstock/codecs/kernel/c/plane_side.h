/* One side of a plane: along one that shrinks a value is the mean of what it covers, along one that grows (chroma may)
 * the bilinear mean of two. Parts of a level are kept until colours are made. */
#ifndef PENSTOCK_PLANE_SIDE_H
#define PENSTOCK_PLANE_SIDE_H

#include <stddef.h>
#include <stdint.h>

/* Fixed point: mixed rows have 128 parts of a level, which still fit into 16 bits, and finished ones 64. */
enum { PENSTOCK_WEIGHT_BITS = 14, PENSTOCK_ROW_BITS = 7, PENSTOCK_FINISHED_BITS = 6 };
/* Rows are taken two at a time, columns four, and finished values are made eight at a time. */
enum { PENSTOCK_ROW_STEP = 2, PENSTOCK_COLUMN_STEP = 4, PENSTOCK_FINISHED_STEP = 8 };
/* What is read at once of a mixed row where columns have four taps. */
enum { PENSTOCK_COLUMN_INPUTS = 8, PENSTOCK_ORDER_BYTES = 2 * PENSTOCK_COLUMN_INPUTS };

/* Value i is the sum of `taps` inputs from first[i] on, times weights, which are zero behind the last that counts and
 * for values behind the last. The weights of columns stand together for two values, four taps of each. Where columns
 * have four taps, both values of two are made of eight inputs from the first of them on: `orders` says of which bytes,
 * sixteen for each two values. */
typedef struct {
    int count, taps;
    int32_t *first;
    int16_t *weights;
    uint8_t *orders;
} penstock_side;

/* How many taps `count` values need that are made of `length` inputs, a multiple of the step. */
int penstock_side_taps(int length, int count, int step);

/* Plan a side of which all is zero but count, taps and memory: `length` inputs, moved by `shift` of one, become the
 * values. What reaches out of the inputs counts as the first or last of them. */
void penstock_plan_rows(penstock_side *side, int length, double shift);
void penstock_plan_columns(penstock_side *side, int length, double shift);

/* One row of `width` values out of lines, which are as many as the taps, an even number. */
void penstock_mix_lines(int16_t *restrict mixed, const uint8_t *const *lines, const int16_t *weights, int taps,
                        int width);

/* A mixed row, readable for all taps and for eight inputs of all values, as a finished one, writable for a multiple of
 * the step. */
void penstock_finish_line(int16_t *restrict finished, const int16_t *restrict mixed, const penstock_side *columns);

#endif

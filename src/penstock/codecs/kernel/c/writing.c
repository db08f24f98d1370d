#include "writing.h"

#include <string.h>

enum { CHANNELS = PENSTOCK_CHANNELS };

penstock_placement penstock_place(const penstock_target *target, penstock_turn turn, unsigned flips)
{
    int columns_reversed = turn.columns_reversed ^ !!(flips & PENSTOCK_FLIP_HORIZONTAL);
    int rows_reversed = turn.rows_reversed ^ !!(flips & PENSTOCK_FLIP_VERTICAL);
    ptrdiff_t across = target->table == NULL ? CHANNELS : 1;
    ptrdiff_t down = across * target->width;
    if (!turn.transposed)
        return rows_reversed ? (penstock_placement){down * (target->height - 1), -down, across, columns_reversed}
                             : (penstock_placement){0, down, across, columns_reversed};
    return columns_reversed ? (penstock_placement){across * (target->width - 1), -across, down, rows_reversed}
                            : (penstock_placement){0, across, down, rows_reversed};
}

static void write_levels(uint8_t *out, ptrdiff_t step, const uint8_t *pixels, int count)
{
    if (step == CHANNELS) {
        memcpy(out, pixels, (size_t)count * CHANNELS);
        return;
    }
    for (int i = 0; i < count; i++, pixels += CHANNELS) {
        out[i * step] = pixels[0];
        out[i * step + 1] = pixels[1];
        out[i * step + 2] = pixels[2];
    }
}

static void write_planes(float *out, ptrdiff_t step, ptrdiff_t plane, const uint8_t *pixels, int count,
                         const float *table)
{
    float *restrict red = out, *restrict green = out + plane, *restrict blue = out + 2 * plane;
    const float *reds = table, *greens = table + PENSTOCK_LEVELS, *blues = table + 2 * PENSTOCK_LEVELS;
    for (int i = 0; i < count; i++, pixels += CHANNELS) {
        red[i * step] = reds[pixels[0]];
        green[i * step] = greens[pixels[1]];
        blue[i * step] = blues[pixels[2]];
    }
}

void penstock_write_row(const penstock_target *target, penstock_placement where, void *out, int row,
                        const uint8_t *pixels, int count)
{
    ptrdiff_t start = where.start + row * where.row_step;
    ptrdiff_t plane = (ptrdiff_t)target->width * target->height;
    if (target->table == NULL)
        write_levels((uint8_t *)out + start, where.column_step, pixels, count);
    else
        write_planes((float *)out + start, where.column_step, plane, pixels, count, target->table);
}

#include "planes.h"

#include <stdlib.h>

#include "plane_colours.h"
#include "plane_side.h"

enum { MOST_CHROMA_BITS = 2 };

/* What is seen of a plane, and its row of the size that was made last. */
typedef struct {
    const uint8_t *bytes;
    int64_t line;
    int width, height;
    penstock_side rows, columns;
    int16_t *finished;
} seen_plane;

typedef struct {
    seen_plane planes[PENSTOCK_PLANES];
    int16_t *mixed;
    const uint8_t **lines;
} workshop;

/* ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Stretches of one block of zeroes; without a block they are only counted. */
typedef struct {
    char *memory;
    size_t used;
} stretches;

static void *stretch(stretches *from, size_t count, size_t item_bytes)
{
    void *found = from->memory == NULL ? NULL : from->memory + from->used;
    from->used += (count * item_bytes + 15) / 16 * 16;
    return found;
}

static size_t in_eights(int count)
{
    return (size_t)(count + PENSTOCK_FINISHED_STEP - 1) / PENSTOCK_FINISHED_STEP * PENSTOCK_FINISHED_STEP;
}

static penstock_side lay_out_side(stretches *from, int count, int taps)
{
    penstock_side side = {count, taps, NULL, NULL, NULL};
    side.first = stretch(from, in_eights(count), sizeof *side.first);
    side.weights = stretch(from, in_eights(count) * (size_t)taps, sizeof *side.weights);
    side.orders = stretch(from, in_eights(count) / 2, PENSTOCK_ORDER_BYTES);
    return side;
}

static void lay_out_plane(stretches *from, seen_plane *self, const penstock_picture *picture, int number, int width,
                          int height)
{
    const penstock_plane *plane = &picture->planes[number];
    int across = number == 0 ? 0 : picture->across.bits, down = number == 0 ? 0 : picture->down.bits;
    self->bytes = plane->bytes + (picture->y >> down) * plane->line + (picture->x >> across);
    self->line = plane->line;
    self->width = picture->width >> across;
    self->height = picture->height >> down;
    self->finished = stretch(from, in_eights(width), sizeof *self->finished);
    self->columns = lay_out_side(from, width, penstock_side_taps(self->width, width, PENSTOCK_COLUMN_STEP));
    self->rows = lay_out_side(from, height, penstock_side_taps(self->height, height, PENSTOCK_ROW_STEP));
}

/* Luma has the most columns and taps, and what is read may reach past the last column. */
static void lay_out(stretches *from, workshop *self, const penstock_picture *picture, int width, int height)
{
    for (int i = 0; i < PENSTOCK_PLANES; i++)
        lay_out_plane(from, &self->planes[i], picture, i, width, height);
    const seen_plane *luma = &self->planes[0];
    size_t behind = (size_t)luma->columns.taps + PENSTOCK_COLUMN_INPUTS;
    self->mixed = stretch(from, (size_t)luma->width + behind, sizeof *self->mixed);
    self->lines = stretch(from, (size_t)luma->rows.taps, sizeof *self->lines);
}

/* Both planes of chroma have the same sides. */
static void plan(workshop *self, const penstock_picture *picture)
{
    seen_plane *luma = &self->planes[0], *blue = &self->planes[1], *red = &self->planes[2];
    penstock_plan_columns(&luma->columns, luma->width, 0);
    penstock_plan_rows(&luma->rows, luma->height, 0);
    penstock_plan_columns(&blue->columns, blue->width, picture->across.quarters / 4.0);
    penstock_plan_rows(&blue->rows, blue->height, picture->down.quarters / 4.0);
    red->columns = blue->columns;
    red->rows = blue->rows;
}

static void finish_row(workshop *self, seen_plane *plane, int row)
{
    const int16_t *weights = plane->rows.weights + (size_t)row * (size_t)plane->rows.taps;
    int taps = plane->rows.taps, first = plane->rows.first[row];
    while (taps > PENSTOCK_ROW_STEP && weights[taps - 1] == 0 && weights[taps - 2] == 0)
        taps -= PENSTOCK_ROW_STEP;
    for (int tap = 0; tap < taps; tap++) {
        int line = first + tap < plane->height ? first + tap : plane->height - 1; /* weighs nothing */
        self->lines[tap] = plane->bytes + line * plane->line;
    }
    penstock_mix_lines(self->mixed, self->lines, weights, taps, plane->width);
    penstock_finish_line(plane->finished, self->mixed, &plane->columns);
}

/* ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────── */

static int is_side(int length)
{
    return length >= 1 && length <= PENSTOCK_MOST_FRAME_SIDE;
}

/* Numbers that no sum of which leaves 32 bits. */
static int is_matrix(const penstock_matrix *matrix)
{
    const int numbers[] = {matrix->red_of_v, matrix->green_of_u, matrix->green_of_v, matrix->blue_of_u};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (abs(numbers[i]) > 3 << PENSTOCK_MATRIX_BITS)
            return 0;
    return matrix->black >= 0 && matrix->black <= 255 && matrix->luma >= 0 &&
           matrix->luma <= 2 << PENSTOCK_MATRIX_BITS;
}

/* Whether all that is seen of a plane lies in it. */
static int holds(const penstock_plane *plane, int64_t end_x, int64_t end_y)
{
    int64_t last = end_y - 1;
    return plane->line >= end_x && plane->size >= end_x && (last == 0 || plane->line <= (plane->size - end_x) / last);
}

/* Chroma may lie half a value before or behind the centre of its pixels. */
static int is_chroma(const penstock_chroma *chroma)
{
    return chroma->bits >= 0 && chroma->bits <= MOST_CHROMA_BITS && abs(chroma->quarters) <= 2;
}

static int is_whole(int place, int length, const penstock_chroma *chroma)
{
    int pixels = 1 << chroma->bits;
    return place >= 0 && place < PENSTOCK_MOST_FRAME_SIDE && place % pixels == 0 && length % pixels == 0;
}

const char *penstock_planes_problem(const penstock_picture *picture, const penstock_matrix *matrix, int width,
                                    int height)
{
    if (!is_side(width) || !is_side(height) || !is_side(picture->width) || !is_side(picture->height))
        return "a side is not from 1 to 16384";
    if (width > picture->width || height > picture->height)
        return "a side grows";
    if (!is_chroma(&picture->across) || !is_chroma(&picture->down))
        return "chroma has not one value near the centre of 1, 2 or 4 pixels";
    if (!is_whole(picture->x, picture->width, &picture->across) ||
        !is_whole(picture->y, picture->height, &picture->down))
        return "the window does not begin and end with a value of chroma";
    if (!is_matrix(matrix))
        return "the matrix has numbers that are too large";
    for (int i = 0; i < PENSTOCK_PLANES; i++)
        if (!holds(&picture->planes[i], (picture->x + picture->width) >> (i == 0 ? 0 : picture->across.bits),
                   (picture->y + picture->height) >> (i == 0 ? 0 : picture->down.bits)))
            return "the window reaches out of a plane";
    return NULL;
}

int penstock_planes_to_rgb(const penstock_picture *picture, const penstock_matrix *matrix, int width, int height,
                           uint8_t *out)
{
    workshop self;
    stretches from = {NULL, 0};
    lay_out(&from, &self, picture, width, height);
    from = (stretches){calloc(from.used, 1), 0};
    if (from.memory == NULL)
        return 0;
    lay_out(&from, &self, picture, width, height);
    plan(&self, picture);
    const penstock_row finished = {self.planes[0].finished, self.planes[1].finished, self.planes[2].finished, width};
    for (int row = 0; row < height; row++, out += 3 * (size_t)width) {
        for (int i = 0; i < PENSTOCK_PLANES; i++)
            finish_row(&self, &self.planes[i], row);
        penstock_write_colours(out, &finished, matrix);
    }
    free(from.memory);
    return 1;
}

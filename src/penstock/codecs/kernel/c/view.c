#include "view.h"

#include <inttypes.h>
#include <string.h>

#include "writing.h"

enum { CHANNELS = PENSTOCK_CHANNELS };

static int is_inside(const penstock_view *view, int64_t width, int64_t height)
{
    return view->width > 0 && view->height > 0 && view->x >= 0 && view->y >= 0 && view->width <= width &&
           view->height <= height && view->x <= width - view->width && view->y <= height - view->height;
}

static int is_size(int64_t width, int64_t height)
{
    return width > 0 && height > 0 && width <= PENSTOCK_MOST_RESIZED && height <= PENSTOCK_MOST_RESIZED;
}

void penstock_check_view(penstock_worker *worker, const penstock_view *view, int64_t width, int64_t height)
{
    if (!is_inside(view, width, height))
        penstock_leave(worker, PENSTOCK_FAILED,
                       "the crop of %" PRId64 "×%" PRId64 " px at %" PRId64 ",%" PRId64
                       " is not inside the image of %" PRId64 "×%" PRId64 " px",
                       view->width, view->height, view->x, view->y, width, height);
    if (!is_size(view->resized_width, view->resized_height))
        penstock_leave(worker, PENSTOCK_FAILED,
                       "a crop cannot be resized to %" PRId64 "×%" PRId64 " px, only to 1×1 to %d×%d",
                       view->resized_width, view->resized_height, PENSTOCK_MOST_RESIZED, PENSTOCK_MOST_RESIZED);
}

static void fill_axis(penstock_worker *worker, penstock_axis *axis, const penstock_span *span, int64_t resized)
{
    size_t count = (size_t)axis->count, most_weights = axis->reducing ? count * (size_t)axis->most_taps : 0;
    axis->taps = penstock_reserve(worker, &axis->tap_memory, count, sizeof(penstock_tap));
    axis->weights = penstock_reserve(worker, &axis->weight_memory, most_weights, sizeof(float));
    penstock_fill_axis(axis, span, resized);
}

int penstock_plan_view(penstock_worker *worker, const penstock_view *view, const penstock_span *across,
                       const penstock_span *down)
{
    penstock_axis *rows = &worker->rows, *columns = &worker->columns;
    penstock_plan_axis(rows, down, view->resized_height, view->part_y, worker->target->height);
    penstock_plan_axis(columns, across, view->resized_width, view->part_x, worker->target->width);
    /* One filter for both axes is simplest; to mix with a share of nothing gives the same levels as to copy. */
    rows->plain = columns->plain = rows->plain && columns->plain;
    if (!rows->plain) {
        fill_axis(worker, rows, down, view->resized_height);
        fill_axis(worker, columns, across, view->resized_width);
    }
    int seen = rows->count > 0 && columns->count > 0;
    if (!seen)
        rows->count = columns->count = 0;
    return seen;
}

static const uint8_t *row_at(const penstock_rows *rows, int number)
{
    size_t place = (size_t)number;
    if (place >= rows->kept) /* a division costs more than a small row */
        place %= rows->kept;
    return rows->pixels + place * rows->row_bytes;
}

static void mix_rows(penstock_worker *worker, int16_t *mixed, const penstock_rows *rows, int position, size_t values)
{
    const penstock_axis *axis = &worker->rows;
    penstock_tap tap = axis->taps[position];
    if (!axis->reducing) {
        penstock_mix_two_rows(mixed, row_at(rows, tap.first), row_at(rows, tap.first + tap.taps - 1), tap.share,
                              values);
        return;
    }
    float *sums = penstock_reserve(worker, &worker->sums, values, sizeof(float));
    memset(sums, 0, values * sizeof(float));
    const float *weights = axis->weights + (size_t)position * (size_t)axis->most_taps;
    for (int i = 0; i < tap.taps; i++)
        penstock_add_row(sums, row_at(rows, tap.first + i), weights[i], values);
    penstock_finish_sums(mixed, sums, values);
}

/* Where the planned rows and columns go in the flipped sample. */
typedef struct {
    int row, row_step, column;
} placement;

static placement place(const penstock_worker *worker, unsigned flips)
{
    const penstock_axis *rows = &worker->rows, *columns = &worker->columns;
    placement where = {rows->lead, 1, columns->lead};
    if (flips & PENSTOCK_FLIP_VERTICAL)
        where = (placement){worker->target->height - 1 - rows->lead, -1, columns->lead};
    if (flips & PENSTOCK_FLIP_HORIZONTAL)
        where.column = worker->target->width - columns->lead - columns->count;
    return where;
}

static void write_plain_rows(penstock_worker *worker, const penstock_rows *rows, placement where, void *sample)
{
    for (int position = 0; position < worker->rows.count; position++) {
        if (rows->bring != NULL)
            rows->bring(worker, position + 1);
        penstock_write_pixels(worker->target, sample, where.row + position * where.row_step, where.column,
                              row_at(rows, position), worker->columns.count, worker->columns.reversed);
    }
}

/* Each row of the sample as soon as the rows that it looks at are there. */
static void write_mixed_rows(penstock_worker *worker, const penstock_rows *rows, placement where, void *sample)
{
    const penstock_axis *down = &worker->rows, *across = &worker->columns;
    size_t values = (size_t)(across->end - across->first) * CHANNELS;
    size_t pixel_bytes = (size_t)across->count * CHANNELS + PENSTOCK_PIXEL_PADDING;
    int16_t *mixed = penstock_reserve(worker, &worker->mixed, values + PENSTOCK_MIXED_PADDING, sizeof(int16_t));
    uint8_t *pixels = penstock_reserve(worker, &worker->pixels, pixel_bytes, 1);
    memset(mixed + values, 0, PENSTOCK_MIXED_PADDING * sizeof(int16_t));
    for (int position = 0; position < down->count; position++) {
        if (rows->bring != NULL)
            rows->bring(worker, down->taps[position].first + down->taps[position].taps);
        mix_rows(worker, mixed, rows, position, values);
        penstock_mix_columns(pixels, mixed, across);
        penstock_write_pixels(worker->target, sample, where.row + position * where.row_step, where.column, pixels,
                              across->count, 0);
    }
}

void penstock_write_view(penstock_worker *worker, const penstock_rows *rows, unsigned flips, void *sample)
{
    const penstock_target *target = worker->target;
    placement where = place(worker, flips);
    worker->columns.reversed = (flips & PENSTOCK_FLIP_HORIZONTAL) != 0;
    /* All of it: that is less work than the edges of every row. */
    if (worker->rows.count < target->height || worker->columns.count < target->width)
        penstock_write_fill(target, sample);
    if (worker->rows.plain)
        write_plain_rows(worker, rows, where, sample);
    else
        write_mixed_rows(worker, rows, where, sample);
}

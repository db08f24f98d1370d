#include "resample.h"

#include <math.h>

/* Above this factor two taps would leave pixels out. */
static const double MOST_BILINEAR = 2.0;

static int clipped(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

void penstock_plan_axis(penstock_axis *axis, const penstock_span *span, int64_t resized, int64_t part, int size)
{
    int nothing = part >= resized || part <= -(int64_t)size; /* first: what follows cannot overflow then */
    axis->lead = nothing ? size : part < 0 ? (int)-part : 0;
    axis->shown = nothing || part < 0 ? 0 : (int)part;
    int64_t end = nothing ? 0 : part + size < resized ? part + size : resized;
    axis->count = nothing ? 0 : (int)(end - axis->shown);
    axis->plain = span->start == 0.0 && span->length == (double)resized;
    axis->reducing = span->length / (double)resized > MOST_BILINEAR;
    axis->most_taps = axis->reducing ? 2 * (int)ceil(span->length / (double)resized) + 2 : 2;
    axis->first = axis->plain ? axis->shown : 0;
    axis->end = axis->first + (axis->plain ? axis->count : 0);
}

static uint32_t pair_of(int share)
{
    uint32_t second = ((uint32_t)share + 1) >> 1;
    return second << 16 | ((1u << PENSTOCK_COLUMN_BITS) - second);
}

/* The taps of a position do not depend on which part is shown. */
static penstock_tap bilinear_tap(const penstock_span *span, double scale, int position)
{
    int available = span->end - span->first;
    double centre = span->start + (position + 0.5) * scale - 0.5;
    double below = floor(centre);
    int first = clipped((int)below, 0, available - 1);
    int inside = (int)below == first && first < available - 1;
    int share = inside ? clipped((int)((centre - below) * PENSTOCK_SHARE_SCALE + 0.5), 0, INT16_MAX) : 0;
    return (penstock_tap){first, inside ? 2 : 1, (int16_t)share, pair_of(share)};
}

static double triangle(double distance)
{
    double size = fabs(distance);
    return size < 1.0 ? 1.0 - size : 0.0;
}

static penstock_tap reducing_tap(const penstock_span *span, double scale, int position, float *weights, int most_taps)
{
    int available = span->end - span->first;
    double centre = span->start + (position + 0.5) * scale;
    int first = clipped((int)floor(centre - scale + 0.5), 0, available - 1);
    int end = clipped((int)floor(centre + scale + 0.5), first + 1, available);
    int taps = clipped(end - first, 1, most_taps);
    double total = 0.0;
    for (int tap = 0; tap < taps; tap++)
        total += triangle((first + tap + 0.5 - centre) / scale);
    for (int tap = 0; tap < taps; tap++)
        weights[tap] = (float)(triangle((first + tap + 0.5 - centre) / scale) / total);
    return (penstock_tap){first, taps, 0, 0};
}

/* Both ends of what positions look at only ever move on, so the first and last position say what all of them do. */
static void count_from_the_first(penstock_axis *axis)
{
    axis->first = axis->taps[0].first;
    axis->end = axis->taps[axis->count - 1].first + axis->taps[axis->count - 1].taps;
    for (int i = 0; i < axis->count; i++)
        axis->taps[i].first -= axis->first;
}

void penstock_fill_axis(penstock_axis *axis, const penstock_span *span, int64_t resized)
{
    double scale = span->length / (double)resized;
    if (axis->reducing)
        for (int i = 0; i < axis->count; i++)
            axis->taps[i] = reducing_tap(span, scale, axis->shown + i,
                                         axis->weights + (size_t)i * (size_t)axis->most_taps, axis->most_taps);
    else
        for (int i = 0; i < axis->count; i++)
            axis->taps[i] = bilinear_tap(span, scale, axis->shown + i);
    if (axis->count > 0)
        count_from_the_first(axis);
}

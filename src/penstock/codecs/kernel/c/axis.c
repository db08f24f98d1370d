#include "resample.h"

#include <math.h>

/* Above this factor two taps would leave pixels out. */
static const double MOST_BILINEAR = 2.0;

int penstock_axis_is_reducing(double length, int count)
{
    return length / count > MOST_BILINEAR;
}

int penstock_axis_most_taps(double length, int count)
{
    if (!penstock_axis_is_reducing(length, count))
        return 2;
    return 2 * (int)ceil(length / count) + 2;
}

static int clipped(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static void fill_bilinear(penstock_axis *axis, double start, double scale, int window)
{
    for (int position = 0; position < axis->count; position++) {
        double centre = start + (position + 0.5) * scale - 0.5;
        double below = floor(centre);
        int first = clipped((int)below, 0, window - 1);
        int inside = (int)below == first && first < window - 1;
        int share = inside ? (int)((centre - below) * PENSTOCK_SHARE_SCALE + 0.5) : 0;
        axis->taps[position] = (penstock_tap){first, inside ? 2 : 1, (int16_t)clipped(share, 0, INT16_MAX)};
    }
}

static double triangle(double distance)
{
    double size = fabs(distance);
    return size < 1.0 ? 1.0 - size : 0.0;
}

static void fill_reducing(penstock_axis *axis, double start, double scale, int window)
{
    for (int position = 0; position < axis->count; position++) {
        double centre = start + (position + 0.5) * scale;
        int first = clipped((int)floor(centre - scale + 0.5), 0, window - 1);
        int end = clipped((int)floor(centre + scale + 0.5), first + 1, window);
        int taps = clipped(end - first, 1, axis->most_taps);
        float *weights = axis->weights + (size_t)position * (size_t)axis->most_taps;
        double total = 0.0;
        for (int tap = 0; tap < taps; tap++)
            total += triangle((first + tap + 0.5 - centre) / scale);
        for (int tap = 0; tap < taps; tap++)
            weights[tap] = (float)(triangle((first + tap + 0.5 - centre) / scale) / total);
        axis->taps[position] = (penstock_tap){first, taps, 0};
    }
}

void penstock_fill_axis(penstock_axis *axis, double start, double length, int window)
{
    double scale = length / axis->count;
    if (axis->reducing)
        fill_reducing(axis, start, scale, window);
    else
        fill_bilinear(axis, start, scale, window);
}

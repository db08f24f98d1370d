#include "plane_side.h"

enum { ONE = 1 << PENSTOCK_WEIGHT_BITS, COLUMN_STEP = PENSTOCK_COLUMN_STEP };

int penstock_side_taps(int length, int count, int step)
{
    int taps = length >= count ? length / count + 2 : 2;
    return (taps + step - 1) / step * step;
}

typedef int16_t *weight_place(const penstock_side *side, int value, int tap);

static int16_t *row_weight(const penstock_side *side, int value, int tap)
{
    return side->weights + (size_t)value * (size_t)side->taps + tap;
}

static int16_t *column_weight(const penstock_side *side, int value, int tap)
{
    int16_t *two = side->weights + (size_t)(value / 2 * 2) * (size_t)side->taps;
    return two + tap / COLUMN_STEP * 2 * COLUMN_STEP + value % 2 * COLUMN_STEP + tap % COLUMN_STEP;
}

static int within(double place, int length)
{
    int number = place > 0 ? (int)place : 0;
    return number < length ? number : length - 1;
}

/* A value that covers begin to end; what rounding leaves goes to the largest part. */
static void cover(penstock_side *side, int value, double begin, double end, int length, weight_place *place)
{
    int first = within(begin, length), largest = 0, left = ONE;
    double parts = ONE / (end - begin);
    for (int tap = 0; tap < side->taps && first + tap < length; tap++) {
        int number = first + tap;
        double from = tap > 0 ? number : begin;
        double to = number + 1 < length && number + 1 < end ? number + 1 : end;
        if (to <= from)
            break;
        int weight = (int)((to - from) * parts + 0.5);
        *place(side, value, tap) = (int16_t)weight;
        left -= weight;
        if (weight > *place(side, value, largest))
            largest = tap;
    }
    *place(side, value, largest) = (int16_t)(*place(side, value, largest) + left);
    side->first[value] = first;
}

static void lie_between(penstock_side *side, int value, double centre, int length, weight_place *place)
{
    int first = within(centre, length);
    int second = centre > 0 && first < length - 1 ? (int)((centre - first) * ONE + 0.5) : 0;
    *place(side, value, 0) = (int16_t)(ONE - second);
    *place(side, value, 1) = (int16_t)second;
    side->first[value] = first;
}

static void plan(penstock_side *side, int length, double shift, weight_place *place)
{
    double scale = (double)length / side->count;
    for (int i = 0; i < side->count; i++)
        if (length >= side->count)
            cover(side, i, i * scale + shift, (i + 1) * scale + shift, length, place);
        else
            lie_between(side, i, (i + 0.5) * scale - 0.5 + shift, length, place);
}

void penstock_plan_rows(penstock_side *side, int length, double shift)
{
    plan(side, length, shift, row_weight);
}

/* Four taps are for factors below three, so the second of two values begins at most three inputs behind the first. */
static void order_inputs(penstock_side *side)
{
    for (int i = 0; i < side->count; i += 2) {
        uint8_t *order = side->orders + i / 2 * PENSTOCK_ORDER_BYTES;
        int behind = i + 1 < side->count ? side->first[i + 1] - side->first[i] : 0;
        for (int byte = 0; byte < PENSTOCK_COLUMN_INPUTS; byte++) {
            order[byte] = (uint8_t)byte;
            order[PENSTOCK_COLUMN_INPUTS + byte] = (uint8_t)(2 * behind + byte);
        }
    }
}

void penstock_plan_columns(penstock_side *side, int length, double shift)
{
    plan(side, length, shift, column_weight);
    if (side->taps == COLUMN_STEP)
        order_inputs(side);
}

/* One view of an image whose rows can be had one after another. */
#ifndef PENSTOCK_VIEW_H
#define PENSTOCK_VIEW_H

#include "worker.h"

/* The pixels that a view looks at. Row n is in place n % kept, where it stays until row n + kept is brought. */
typedef struct {
    const uint8_t *pixels; /* the first pixel of place 0 */
    size_t row_bytes, kept;
    void (*bring)(penstock_worker *worker, int end); /* see that all rows before `end` came; NULL when all are there */
} penstock_rows;

/* Leave the image when the view does not fit to one of that size. */
void penstock_check_view(penstock_worker *worker, const penstock_view *view, int64_t width, int64_t height);

/* Plan both axes; says whether any pixel of the image is seen. */
int penstock_plan_view(penstock_worker *worker, const penstock_view *view, const penstock_span *across,
                       const penstock_span *down);

/* Write the sample, as planned. */
void penstock_write_view(penstock_worker *worker, const penstock_rows *rows, unsigned flips, void *sample);

#endif

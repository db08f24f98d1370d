/* What is kept from image to image, and how an image is left before its end. */
#ifndef PENSTOCK_WORKER_H
#define PENSTOCK_WORKER_H

#include <setjmp.h>

#include "kernel.h"
#include "resample.h"

typedef struct {
    jmp_buf escape;            /* where to go on after an image that failed */
    penstock_failure *failure; /* what to say then */
    const penstock_target *target;
    penstock_axis rows, columns;
    /* Memory that only grows. */
    penstock_buffer decoded; /* the last rows of a decoder, or a whole part of an image that was turned */
    penstock_buffer mixed, sums, pixels;
} penstock_worker;

/* Leave the image. Nothing between here and `escape` may own memory. */
__attribute__((noreturn, format(printf, 3, 4))) void penstock_leave(penstock_worker *worker, int status,
                                                                     const char *format, ...);

/* At least so much memory; what was in it is lost. */
void *penstock_reserve(penstock_worker *worker, penstock_buffer *buffer, size_t count, size_t item_bytes);

void penstock_release(penstock_worker *worker);

#endif

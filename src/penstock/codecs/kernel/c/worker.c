#include "worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void penstock_leave(penstock_worker *worker, int status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(worker->failure->reason, sizeof worker->failure->reason, format, values);
    va_end(values);
    worker->failure->status = status;
    longjmp(worker->escape, 1);
}

void *penstock_reserve(penstock_worker *worker, penstock_buffer *buffer, size_t count, size_t item_bytes)
{
    if (count > (SIZE_MAX - 1) / item_bytes)
        penstock_leave(worker, PENSTOCK_FAILED, "it needs more memory than can be counted");
    size_t bytes = count * item_bytes + 1; /* never nothing */
    if (bytes <= buffer->bytes)
        return buffer->memory;
    free(buffer->memory);
    buffer->bytes = 0;
    buffer->memory = malloc(bytes);
    if (buffer->memory == NULL)
        penstock_leave(worker, PENSTOCK_FAILED, "there is not enough memory");
    buffer->bytes = bytes;
    return buffer->memory;
}

void penstock_release(penstock_worker *worker)
{
    penstock_buffer *buffers[] = {&worker->rows.tap_memory,       &worker->rows.weight_memory,
                                  &worker->columns.tap_memory,    &worker->columns.weight_memory,
                                  &worker->decoded,               &worker->mixed,
                                  &worker->sums,                  &worker->pixels};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        free(buffers[i]->memory);
}

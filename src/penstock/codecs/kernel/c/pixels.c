#include "kernel.h"
#include "view.h"
#include "worker.h"

#include <inttypes.h>
#include <string.h>

enum { CHANNELS = PENSTOCK_CHANNELS };

typedef struct {
    penstock_worker worker;
    const penstock_source *buffers;
    size_t buffer_count;
} picker;

static int is_image(const penstock_place *place)
{
    return place->width > 0 && place->height > 0 && place->width <= PENSTOCK_MOST_PIXELS &&
           place->height <= PENSTOCK_MOST_PIXELS / place->width;
}

/* The first pixel of an image; NULL when the image is not inside its buffer. */
static const uint8_t *find(const picker *self, const penstock_place *place)
{
    if (!is_image(place) || place->buffer < 0 || (uint64_t)place->buffer >= self->buffer_count)
        return NULL;
    const penstock_source *buffer = &self->buffers[place->buffer];
    uint64_t bytes = (uint64_t)(place->width * place->height * CHANNELS);
    if (place->offset < 0 || bytes > buffer->size || (uint64_t)place->offset > buffer->size - bytes)
        return NULL;
    return buffer->bytes + place->offset;
}

static void leave_outside(picker *self, const penstock_place *place)
{
    if (place->buffer < 0 || (uint64_t)place->buffer >= self->buffer_count)
        penstock_leave(&self->worker, PENSTOCK_FAILED, "there is no buffer %" PRId64 " among %zu", place->buffer,
                       self->buffer_count);
    if (!is_image(place))
        penstock_leave(&self->worker, PENSTOCK_FAILED,
                       "an image cannot have %" PRId64 "×%" PRId64 " px, only 1 to %ld in all", place->width,
                       place->height, PENSTOCK_MOST_PIXELS);
    penstock_leave(&self->worker, PENSTOCK_FAILED,
                   "the image of %" PRId64 "×%" PRId64 " px at byte %" PRId64 " is not inside its buffer of %zu bytes",
                   place->width, place->height, place->offset, self->buffers[place->buffer].size);
}

static penstock_span span_of(int64_t start, int64_t length)
{
    return (penstock_span){(int)start, (int)(start + length), 0.0, (double)length};
}

/* May leave through `escape` at any point; apart, so that no variable of its caller is lost on that way. */
__attribute__((noinline)) static void pick_image(picker *self, const penstock_place *place, const penstock_view *view,
                                                 unsigned flips, void *sample)
{
    const uint8_t *pixels = find(self, place);
    if (pixels == NULL)
        leave_outside(self, place);
    penstock_check_view(&self->worker, view, place->width, place->height);
    penstock_span across = span_of(view->x, view->width), down = span_of(view->y, view->height);
    if (penstock_plan_view(&self->worker, view, &across, &down)) {
        int64_t row = down.first + self->worker.rows.first, column = across.first + self->worker.columns.first;
        pixels += (row * place->width + column) * CHANNELS;
    }
    penstock_rows rows = {pixels, (size_t)place->width * CHANNELS, SIZE_MAX, NULL};
    penstock_write_view(&self->worker, &rows, flips, sample);
}

/* Says whether the sample was made. */
static int attempt(picker *self, const penstock_place *place, const penstock_view *view, unsigned flips, void *sample)
{
    if (setjmp(self->worker.escape) != 0)
        return 0;
    pick_image(self, place, view, flips, sample);
    return 1;
}

size_t penstock_pixels_range(const penstock_source *buffers, size_t buffer_count, const penstock_place *places,
                             const penstock_view *views, const uint8_t *flips, size_t count,
                             const penstock_target *target, void *out, penstock_failure *failures)
{
    picker self;
    memset(&self, 0, sizeof self);
    self.worker.target = target;
    self.buffers = buffers;
    self.buffer_count = buffer_count;
    size_t failed = 0, sample_bytes = penstock_sample_bytes(target);
    for (size_t i = 0; i < count; i++) {
        self.worker.failure = &failures[failed];
        if (attempt(&self, &places[i], &views[i], flips[i], (char *)out + i * sample_bytes))
            continue;
        failures[failed].position = i;
        failed++;
    }
    penstock_release(&self.worker);
    return failed;
}

#include "kernel.h"
#include "orientation.h"
#include "view.h"
#include "worker.h"

#include <math.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#if !defined(LIBJPEG_TURBO_VERSION_NUMBER) || LIBJPEG_TURBO_VERSION_NUMBER < 2001000
#error "The kernel needs libjpeg-turbo 2.1 or newer: others have no exact partial decoding."
#endif

/* Below this side a scaled size does not tell which scale it came from. */
enum { LEAST_REDUCED_SIDE = 16 };
/* With one or two columns of chroma libjpeg-turbo leaves smooth upsampling away; at most four pixels share one. */
enum { LEAST_COLUMNS = 16 };
enum { CHANNELS = PENSTOCK_CHANNELS };
/* The decoder gives at most 16 rows of a block at once, whatever the subsampling. */
enum { ROWS_AT_ONCE = 16 };

typedef struct {
    penstock_worker worker; /* first: each is the other for the functions that are given one of them */
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *places; /* rows as they are decoded, with columns beside those that are looked at */
    size_t row_bytes, kept;
    int next; /* the row that comes next */
} decoder;

/* The image as it is shown, in pixels as they are decoded, which may be at 1/2, 1/4 or 1/8. */
typedef struct {
    int width, height;                 /* stored at full size */
    int decoded_width, decoded_height; /* the upright image */
    int factor;
    penstock_turn turn;
} shape;

/* Some legal JPEGs are only not for this library. */
static int is_other_kind(int code)
{
    return code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION || code == JERR_ARITH_NOTIMPL;
}

static void on_error(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX] = "";
    decoder *self = jpeg->client_data;
    int is_other = is_other_kind(jpeg->err->msg_code);
    if (!is_other)
        jpeg->err->format_message(jpeg, text);
    penstock_leave(&self->worker, is_other ? PENSTOCK_OTHER : PENSTOCK_FAILED, "%s", text);
}

/* A warning means damaged data: libjpeg would go on with invented pixels. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        on_error(jpeg);
}

static void be_silent(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void start_errors(decoder *self)
{
    self->jpeg.err = jpeg_std_error(&self->errors);
    self->errors.error_exit = on_error;
    self->errors.emit_message = on_message;
    self->errors.output_message = be_silent;
    self->jpeg.client_data = self;
}

static void check_kind(decoder *self)
{
    int components = self->jpeg.num_components;
    if (self->jpeg.data_precision != 8 || (components != 1 && components != 3))
        penstock_leave(&self->worker, PENSTOCK_OTHER, "%s", "");
    if ((long long)self->jpeg.image_width * self->jpeg.image_height > PENSTOCK_MOST_PIXELS)
        penstock_leave(&self->worker, PENSTOCK_FAILED, "%u×%u px are more than the %ld that are decoded",
                       self->jpeg.image_width, self->jpeg.image_height, PENSTOCK_MOST_PIXELS);
}

/* The largest of 2, 4 and 8 by which the crop is too large in both directions, or 1. */
static int reduction(const decoder *self, const penstock_view *view)
{
    int small = self->jpeg.image_width < LEAST_REDUCED_SIDE || self->jpeg.image_height < LEAST_REDUCED_SIDE;
    if (!self->worker.target->reduce || small)
        return 1;
    int factor = 8;
    while (factor > 1 &&
           (view->width < factor * view->resized_width || view->height < factor * view->resized_height))
        factor /= 2;
    return factor;
}

/* Reduced pixels count from where the stored image begins, which is the end of an axis that is reversed. */
static penstock_span span_of(int64_t start, int64_t length, int full, int decoded, int factor, int reversed)
{
    double begin = reversed ? decoded - (double)(full - start) / factor : (double)start / factor;
    penstock_span span = {0, 0, 0.0, (double)length / factor};
    span.first = (int)floor(begin);
    span.end = (int)ceil(begin + span.length);
    span.start = begin - span.first;
    return span;
}

static shape read_shape(decoder *self, penstock_source source, const penstock_view *view)
{
    shape image = {.turn = penstock_read_turn(source.bytes, source.size)};
    int width = (int)self->jpeg.image_width, height = (int)self->jpeg.image_height;
    image.width = image.turn.transposed ? height : width;
    image.height = image.turn.transposed ? width : height;
    penstock_check_view(&self->worker, view, image.width, image.height);
    image.factor = reduction(self, view);
    image.decoded_width = (image.width + image.factor - 1) / image.factor;
    image.decoded_height = (image.height + image.factor - 1) / image.factor;
    return image;
}

/* The upright pixels that the view looks at; none when it shows nothing but fill. */
static penstock_area plan(decoder *self, const penstock_view *view, const shape *image)
{
    penstock_span across = span_of(view->x, view->width, image->width, image->decoded_width, image->factor,
                                   image->turn.columns_reversed);
    penstock_span down = span_of(view->y, view->height, image->height, image->decoded_height, image->factor,
                                 image->turn.rows_reversed);
    if (!penstock_plan_view(&self->worker, view, &across, &down))
        return (penstock_area){0, 0, 0, 0};
    const penstock_axis *rows = &self->worker.rows, *columns = &self->worker.columns;
    return (penstock_area){across.first + columns->first, down.first + rows->first, columns->end - columns->first,
                           rows->end - rows->first};
}

/* Let the decoder leave columns away; returns how many of those that it gives come before the area. */
static size_t crop_columns(decoder *self, penstock_area area)
{
    JDIMENSION whole = self->jpeg.output_width, x = (JDIMENSION)area.x, end = (JDIMENSION)(area.x + area.width);
    /* One pixel more on each side: smooth upsampling of chroma looks at its neighbours. */
    JDIMENSION left = x > 0 ? x - 1 : 0, right = end + 1;
    if (right - left < LEAST_COLUMNS)
        right = left + LEAST_COLUMNS;
    if (right > whole)
        right = whole;
    if (right - left < LEAST_COLUMNS)
        left = right > LEAST_COLUMNS ? right - LEAST_COLUMNS : 0;
    JDIMENSION width = right - left;
    if (width < whole)
        jpeg_crop_scanline(&self->jpeg, &left, &width);
    else
        left = 0;
    if (left > x || end - left > self->jpeg.output_width)
        penstock_leave(&self->worker, PENSTOCK_FAILED, "the columns of the crop cannot be decoded apart");
    return x - left;
}

static void bring(penstock_worker *worker, int end)
{
    decoder *self = (decoder *)worker;
    for (; self->next < end; self->next++) {
        JSAMPROW row = self->places + (size_t)self->next % self->kept * self->row_bytes;
        if (jpeg_read_scanlines(&self->jpeg, &row, 1) != 1)
            penstock_leave(worker, PENSTOCK_FAILED, "the decoder stopped before the end");
    }
}

/* Start at an area of the stored image; returns the bytes of a decoded row that come before it. */
static size_t start_area(decoder *self, penstock_area area)
{
    jpeg_start_decompress(&self->jpeg);
    size_t skipped = crop_columns(self, area) * CHANNELS;
    if (area.y > 0 && jpeg_skip_scanlines(&self->jpeg, (JDIMENSION)area.y) != (JDIMENSION)area.y)
        penstock_leave(&self->worker, PENSTOCK_FAILED, "the rows above the crop cannot be skipped");
    self->next = 0;
    self->row_bytes = (size_t)self->jpeg.output_width * CHANNELS;
    return skipped;
}

/* The rows of an area, of which `kept` are there at a time. */
static penstock_rows rows_of(decoder *self, size_t skipped, size_t kept, size_t more_bytes)
{
    self->kept = kept;
    self->places = penstock_reserve(&self->worker, &self->worker.decoded, kept * self->row_bytes + more_bytes, 1);
    return (penstock_rows){self->places + skipped, self->row_bytes, kept, bring};
}

/* Whether the sample is nothing but the rows of the decoder, one below the other. */
static int is_whole(const decoder *self, unsigned flips)
{
    const penstock_worker *worker = &self->worker;
    const penstock_target *target = worker->target;
    return worker->rows.plain && target->table == NULL && flips == 0 && worker->rows.count == target->height &&
           worker->columns.count == target->width && self->jpeg.output_width == (JDIMENSION)target->width;
}

/* Straight into the sample: a copy of each row would cost a tenth of the time of small images. */
static void read_whole(decoder *self, uint8_t *sample)
{
    JSAMPROW places[ROWS_AT_ONCE];
    int height = self->worker.target->height;
    while (self->next < height) {
        int count = height - self->next < ROWS_AT_ONCE ? height - self->next : ROWS_AT_ONCE;
        for (int i = 0; i < count; i++)
            places[i] = sample + (size_t)(self->next + i) * self->row_bytes;
        int came = (int)jpeg_read_scanlines(&self->jpeg, places, (JDIMENSION)count);
        if (came < 1)
            penstock_leave(&self->worker, PENSTOCK_FAILED, "the decoder stopped before the end");
        self->next += came;
    }
}

static void write_upright(decoder *self, penstock_area area, unsigned flips, void *sample)
{
    size_t skipped = start_area(self, area);
    if (is_whole(self, flips)) {
        read_whole(self, sample);
        return;
    }
    penstock_rows rows = rows_of(self, skipped, self->worker.rows.plain ? 1 : (size_t)self->worker.rows.most_taps, 0);
    penstock_write_view(&self->worker, &rows, flips, sample);
}

/* All of the area is decoded and turned first: so it is resized in the same order as an image stored upright. */
static void write_turned(decoder *self, penstock_area upright, const shape *image, unsigned flips, void *sample)
{
    penstock_area area = penstock_stored_area(upright, image->decoded_width, image->decoded_height, image->turn);
    size_t row_bytes = (size_t)upright.width * CHANNELS, turned_bytes = (size_t)upright.height * row_bytes;
    penstock_rows stored = rows_of(self, start_area(self, area), 1, turned_bytes);
    uint8_t *turned = self->places + self->row_bytes;
    for (int row = 0; row < area.height; row++) {
        bring(&self->worker, row + 1);
        penstock_turn_row(turned, stored.pixels, row, area, image->turn);
    }
    penstock_rows rows = {turned, row_bytes, (size_t)upright.height, NULL};
    penstock_write_view(&self->worker, &rows, flips, sample);
}

static void write_nothing(decoder *self, unsigned flips, void *sample)
{
    penstock_rows rows = {NULL, 0, 1, NULL};
    penstock_write_view(&self->worker, &rows, flips, sample);
}

/* May leave through `escape` at any point; apart, so that no variable of its caller is lost on that way. */
__attribute__((noinline)) static void decode_image(decoder *self, penstock_source source, const penstock_view *view,
                                                   unsigned flips, void *sample)
{
    jpeg_mem_src(&self->jpeg, source.bytes, (unsigned long)source.size);
    jpeg_read_header(&self->jpeg, TRUE);
    check_kind(self);
    shape image = read_shape(self, source, view);
    self->jpeg.scale_num = 1;
    self->jpeg.scale_denom = (unsigned)image.factor;
    self->jpeg.out_color_space = JCS_RGB;
    self->jpeg.dct_method = self->worker.target->fast ? JDCT_IFAST : JDCT_ISLOW;
    penstock_area area = plan(self, view, &image);
    if (area.width == 0)
        write_nothing(self, flips, sample);
    else if (penstock_is_upright(image.turn))
        write_upright(self, area, flips, sample);
    else
        write_turned(self, area, &image, flips, sample);
    /* Only an area that reaches the last row can know whether the end of the file is there. */
    if (area.width > 0 && self->jpeg.output_scanline >= self->jpeg.output_height)
        jpeg_finish_decompress(&self->jpeg);
}

static int looks_like_jpeg(penstock_source source)
{
    return source.size >= 3 && memcmp(source.bytes, "\xff\xd8\xff", 3) == 0;
}

/* Says whether the sample was made. */
static int attempt(decoder *self, penstock_source source, const penstock_view *view, unsigned flips, void *sample)
{
    volatile int made = 0;
    if (setjmp(self->worker.escape) == 0) {
        decode_image(self, source, view, flips, sample);
        made = 1;
    }
    jpeg_abort_decompress(&self->jpeg);
    return made;
}

static int start(decoder *self)
{
    start_errors(self);
    if (setjmp(self->worker.escape) != 0)
        return 0;
    jpeg_create_decompress(&self->jpeg);
    self->jpeg.client_data = self;
    return 1;
}

size_t penstock_decode_range(const penstock_source *sources, const penstock_view *views, const uint8_t *flips,
                             size_t count, const penstock_target *target, void *out, penstock_failure *failures)
{
    decoder self;
    penstock_failure unstarted;
    memset(&self, 0, sizeof self);
    self.worker.target = target;
    self.worker.failure = &unstarted;
    int started = start(&self);
    size_t failed = 0, sample_bytes = penstock_sample_bytes(target);
    for (size_t i = 0; i < count; i++) {
        penstock_failure *failure = self.worker.failure = &failures[failed];
        if (!started)
            *failure = unstarted;
        else if (!looks_like_jpeg(sources[i]))
            *failure = (penstock_failure){.status = PENSTOCK_OTHER};
        else if (attempt(&self, sources[i], &views[i], flips[i], (char *)out + i * sample_bytes))
            continue;
        failure->position = i;
        failed++;
    }
    penstock_release(&self.worker);
    jpeg_destroy_decompress(&self.jpeg);
    return failed;
}

#include "kernel.h"
#include "orientation.h"
#include "resample.h"
#include "writing.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>
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

/* Memory that is kept from image to image and only grows. */
typedef struct {
    void *memory;
    size_t bytes;
} buffer;

/* Where the crop lies in the image as it is decoded, which may be at 1/2, 1/4 or 1/8. */
typedef struct {
    int x, y, width, height;    /* whole decoded pixels */
    double start_x, start_y;    /* where the crop begins inside */
    double length_x, length_y;  /* and how far it goes */
} window;

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    const penstock_target *target;
    penstock_result *result;
    penstock_axis rows, columns;
    buffer row_taps, row_weights, column_taps, column_weights;
    buffer decoded; /* the last rows of the decoder, as many as one output row looks at */
    buffer mixed, sums, pixels;
} worker;

/* Leave the image: the result says why. */
static void leave(worker *self, int status)
{
    self->result->status = status;
    longjmp(self->escape, 1);
}

static void leave_with(worker *self, const char *reason)
{
    snprintf(self->result->reason, sizeof self->result->reason, "%s", reason);
    leave(self, PENSTOCK_FAILED);
}

/* Some legal JPEGs are only not for this library. */
static int is_other_kind(int code)
{
    return code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION || code == JERR_ARITH_NOTIMPL;
}

static void on_error(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];
    worker *self = jpeg->client_data;
    if (is_other_kind(jpeg->err->msg_code))
        leave(self, PENSTOCK_OTHER);
    jpeg->err->format_message(jpeg, text);
    leave_with(self, text);
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

static void *reserve(worker *self, buffer *kept, size_t count, size_t item_bytes)
{
    if (count > (SIZE_MAX - 1) / item_bytes)
        leave_with(self, "it needs more memory than can be counted");
    size_t bytes = count * item_bytes + 1; /* never nothing */
    if (bytes <= kept->bytes)
        return kept->memory;
    free(kept->memory);
    kept->bytes = 0;
    kept->memory = malloc(bytes);
    if (kept->memory == NULL)
        leave_with(self, "there is not enough memory");
    kept->bytes = bytes;
    return kept->memory;
}

static void start_errors(worker *self)
{
    self->jpeg.err = jpeg_std_error(&self->errors);
    self->errors.error_exit = on_error;
    self->errors.emit_message = on_message;
    self->errors.output_message = be_silent;
    self->jpeg.client_data = self;
}

static void check_kind(worker *self)
{
    int components = self->jpeg.num_components;
    if (self->jpeg.data_precision != 8 || (components != 1 && components != 3))
        leave(self, PENSTOCK_OTHER);
    if ((long long)self->jpeg.image_width * self->jpeg.image_height > PENSTOCK_MOST_PIXELS) {
        snprintf(self->result->reason, sizeof self->result->reason, "%u×%u px are more than the %ld that are decoded",
                 self->jpeg.image_width, self->jpeg.image_height, PENSTOCK_MOST_PIXELS);
        leave(self, PENSTOCK_FAILED);
    }
}

static int is_inside(penstock_crop crop, int width, int height)
{
    return crop.width > 0 && crop.height > 0 && crop.x >= 0 && crop.y >= 0 && crop.width <= width &&
           crop.height <= height && crop.x <= width - crop.width && crop.y <= height - crop.height;
}

static penstock_crop stored_crop(worker *self, penstock_crop crop, penstock_turn turn)
{
    int width = (int)self->jpeg.image_width, height = (int)self->jpeg.image_height;
    if (turn.transposed) {
        width = (int)self->jpeg.image_height;
        height = (int)self->jpeg.image_width;
    }
    if (!is_inside(crop, width, height)) {
        snprintf(self->result->reason, sizeof self->result->reason,
                 "the crop of %d×%d px at %d,%d is not inside the image of %d×%d px", crop.width, crop.height, crop.x,
                 crop.y, width, height);
        leave(self, PENSTOCK_FAILED);
    }
    return penstock_stored_crop(crop, width, height, turn);
}

/* The largest of 2, 4 and 8 by which the crop is too large in both directions, or 1. */
static int reduction(const worker *self, penstock_crop crop)
{
    int small = self->jpeg.image_width < LEAST_REDUCED_SIDE || self->jpeg.image_height < LEAST_REDUCED_SIDE;
    if (!self->target->reduce || small)
        return 1;
    int factor = 8;
    while (factor > 1 && (crop.width < factor * self->columns.count || crop.height < factor * self->rows.count))
        factor /= 2;
    return factor;
}

static window window_of(penstock_crop crop, int factor)
{
    window part;
    part.x = crop.x / factor;
    part.y = crop.y / factor;
    part.width = (crop.x + crop.width + factor - 1) / factor - part.x;
    part.height = (crop.y + crop.height + factor - 1) / factor - part.y;
    part.start_x = (double)crop.x / factor - part.x;
    part.start_y = (double)crop.y / factor - part.y;
    part.length_x = (double)crop.width / factor;
    part.length_y = (double)crop.height / factor;
    return part;
}

static void make_axis(worker *self, penstock_axis *axis, buffer *taps, buffer *weights, double start, double length,
                      int positions)
{
    axis->reducing = penstock_axis_is_reducing(length, axis->count);
    axis->most_taps = penstock_axis_most_taps(length, axis->count);
    axis->taps = reserve(self, taps, (size_t)axis->count, sizeof(penstock_tap));
    size_t most_weights = axis->reducing ? (size_t)axis->count * (size_t)axis->most_taps : 0;
    axis->weights = reserve(self, weights, most_weights, sizeof(float));
    penstock_fill_axis(axis, start, length, positions);
}

static void make_axes(worker *self, const window *part)
{
    make_axis(self, &self->columns, &self->column_taps, &self->column_weights, part->start_x, part->length_x,
              part->width);
    make_axis(self, &self->rows, &self->row_taps, &self->row_weights, part->start_y, part->length_y, part->height);
}

/* Decode only the columns of the window; says how many decoded pixels stand left of it. */
static size_t crop_columns(worker *self, const window *part)
{
    JDIMENSION whole = self->jpeg.output_width;
    /* One pixel more on each side: smooth upsampling of chroma looks at its neighbours. */
    JDIMENSION left = part->x > 0 ? (JDIMENSION)part->x - 1 : 0;
    JDIMENSION right = (JDIMENSION)(part->x + part->width) + 1;
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
    if (left > (JDIMENSION)part->x || (JDIMENSION)(part->x + part->width) - left > self->jpeg.output_width)
        leave_with(self, "the columns of the crop cannot be decoded apart");
    return (size_t)part->x - left;
}

static void mix_rows(worker *self, int16_t *mixed, const uint8_t *decoded, size_t row_bytes, int position,
                     size_t values)
{
    const penstock_axis *rows = &self->rows;
    penstock_tap tap = rows->taps[position];
    size_t kept = (size_t)rows->most_taps;
    if (!rows->reducing) {
        const uint8_t *upper = decoded + (size_t)tap.first % kept * row_bytes;
        const uint8_t *lower = decoded + (size_t)(tap.first + tap.taps - 1) % kept * row_bytes;
        penstock_mix_two_rows(mixed, upper, lower, tap.share, values);
        return;
    }
    float *sums = reserve(self, &self->sums, values, sizeof(float));
    memset(sums, 0, values * sizeof(float));
    const float *weights = rows->weights + (size_t)position * kept;
    for (int i = 0; i < tap.taps; i++)
        penstock_add_row(sums, decoded + (size_t)(tap.first + i) % kept * row_bytes, weights[i], values);
    penstock_finish_sums(mixed, sums, values);
}

/* Each output row as soon as the rows that it looks at are there. */
static void write_rows(worker *self, const window *part, size_t skipped_columns, void *out, penstock_placement where)
{
    size_t row_bytes = (size_t)self->jpeg.output_width * CHANNELS, values = (size_t)part->width * CHANNELS;
    size_t kept = (size_t)self->rows.most_taps;
    uint8_t *decoded = reserve(self, &self->decoded, kept * row_bytes, 1);
    int16_t *mixed = reserve(self, &self->mixed, values + PENSTOCK_MIXED_PADDING, sizeof(int16_t));
    uint8_t *pixels = reserve(self, &self->pixels, (size_t)self->columns.count * CHANNELS + PENSTOCK_PIXEL_PADDING, 1);
    memset(mixed + values, 0, PENSTOCK_MIXED_PADDING * sizeof(int16_t));
    int next = self->rows.taps[0].first;
    for (int position = 0; position < self->rows.count; position++) {
        penstock_tap tap = self->rows.taps[position];
        for (; next < tap.first + tap.taps; next++) {
            JSAMPROW row = decoded + (size_t)next % kept * row_bytes;
            if (jpeg_read_scanlines(&self->jpeg, &row, 1) != 1)
                leave_with(self, "the decoder stopped before the end");
        }
        mix_rows(self, mixed, decoded + skipped_columns * CHANNELS, row_bytes, position, values);
        penstock_mix_columns(pixels, mixed, &self->columns);
        penstock_write_row(self->target, where, out, position, pixels, self->columns.count);
    }
}

static void decode_part(worker *self, const window *part, void *out, penstock_placement where)
{
    jpeg_start_decompress(&self->jpeg);
    size_t skipped_columns = crop_columns(self, part);
    JDIMENSION skipped_rows = (JDIMENSION)(part->y + self->rows.taps[0].first);
    if (skipped_rows > 0 && jpeg_skip_scanlines(&self->jpeg, skipped_rows) != skipped_rows)
        leave_with(self, "the rows above the crop cannot be skipped");
    write_rows(self, part, skipped_columns, out, where);
    /* Only a crop that reaches the last row can know whether the end of the file is there. */
    if (self->jpeg.output_scanline >= self->jpeg.output_height)
        jpeg_finish_decompress(&self->jpeg);
}

/* May leave through self->escape at any point; apart, so that no variable of its caller is lost on that way. */
__attribute__((noinline)) static void decode_image(worker *self, penstock_source source, penstock_crop crop, unsigned flips, void *out)
{
    penstock_turn turn = penstock_read_turn(source.bytes, source.size);
    jpeg_mem_src(&self->jpeg, source.bytes, (unsigned long)source.size);
    jpeg_read_header(&self->jpeg, TRUE);
    check_kind(self);
    penstock_crop stored = stored_crop(self, crop, turn);
    self->columns.count = turn.transposed ? self->target->height : self->target->width;
    self->rows.count = turn.transposed ? self->target->width : self->target->height;
    int factor = reduction(self, stored);
    window part = window_of(stored, factor);
    self->jpeg.scale_num = 1;
    self->jpeg.scale_denom = (unsigned)factor;
    self->jpeg.out_color_space = JCS_RGB;
    make_axes(self, &part);
    penstock_placement where = penstock_place(self->target, turn, flips);
    self->columns.reversed = where.columns_reversed;
    decode_part(self, &part, out, where);
    self->result->status = PENSTOCK_DONE;
}

static int looks_like_jpeg(penstock_source source)
{
    return source.size >= 3 && memcmp(source.bytes, "\xff\xd8\xff", 3) == 0;
}

static void attempt(worker *self, penstock_source source, penstock_crop crop, unsigned flips, void *out)
{
    self->result->status = PENSTOCK_OTHER;
    self->result->reason[0] = '\0';
    if (!looks_like_jpeg(source))
        return;
    if (setjmp(self->escape) == 0)
        decode_image(self, source, crop, flips, out);
    jpeg_abort_decompress(&self->jpeg);
}

static void release(worker *self)
{
    buffer *kept[] = {&self->row_taps, &self->row_weights, &self->column_taps, &self->column_weights,
                      &self->decoded,  &self->mixed,       &self->sums,        &self->pixels};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        free(kept[i]->memory);
    jpeg_destroy_decompress(&self->jpeg);
}

static int start(worker *self)
{
    start_errors(self);
    if (setjmp(self->escape) != 0)
        return 0;
    jpeg_create_decompress(&self->jpeg);
    self->jpeg.client_data = self;
    return 1;
}

size_t penstock_sample_bytes(const penstock_target *target)
{
    size_t values = (size_t)target->width * (size_t)target->height * CHANNELS;
    return target->table == NULL ? values : values * sizeof(float);
}

void penstock_decode_range(const penstock_source *sources, const penstock_crop *crops, const uint8_t *flips,
                           size_t count, const penstock_target *target, void *out, penstock_result *results)
{
    worker self;
    penstock_result unstarted = {PENSTOCK_FAILED, ""};
    memset(&self, 0, sizeof self);
    self.target = target;
    self.result = &unstarted;
    int started = start(&self);
    size_t sample_bytes = penstock_sample_bytes(target);
    for (size_t i = 0; i < count; i++) {
        results[i] = unstarted;
        self.result = &results[i];
        if (started)
            attempt(&self, sources[i], crops[i], flips[i], (char *)out + i * sample_bytes);
    }
    release(&self);
}

#include "measure.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { CHANNELS = PENSTOCK_CHANNELS };
/* 16 pixels side by side: their sums fit into vector registers. */
enum { LANES = 16 * CHANNELS };
/* So many squares of bytes fit into 32 bits. */
enum { MOST_ADDED = UINT32_MAX / (255u * 255u) };

typedef struct {
    uint32_t sums[LANES], squares[LANES];
    unsigned added;
} lanes;

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    unsigned char *row;
    size_t row_bytes;
    lanes lanes;
} worker;

static void on_error(j_common_ptr jpeg)
{
    worker *self = jpeg->client_data;
    longjmp(self->escape, 1);
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

static void add_lanes(lanes *self, penstock_sums *total)
{
    for (int i = 0; i < LANES; i++) {
        total->sums[i % CHANNELS] += self->sums[i];
        total->squares[i % CHANNELS] += self->squares[i];
    }
    memset(self, 0, sizeof *self);
}

static void add_row(lanes *self, const unsigned char *row, size_t values, penstock_sums *total)
{
    size_t i = 0;
    for (; i + LANES <= values; i += LANES) {
        if (self->added == MOST_ADDED)
            add_lanes(self, total);
        for (int k = 0; k < LANES; k++) {
            uint32_t value = row[i + (size_t)k];
            self->sums[k] += value;
            self->squares[k] += value * value;
        }
        self->added++;
    }
    for (; i < values; i++) {
        total->sums[i % CHANNELS] += row[i];
        total->squares[i % CHANNELS] += (uint32_t)row[i] * row[i];
    }
}

static int is_measured(const worker *self, unsigned least_side)
{
    const struct jpeg_decompress_struct *jpeg = &self->jpeg;
    return jpeg->data_precision == 8 && (jpeg->num_components == 1 || jpeg->num_components == 3) &&
           jpeg->image_width >= least_side && jpeg->image_height >= least_side &&
           (long long)jpeg->image_width * jpeg->image_height <= PENSTOCK_MOST_PIXELS;
}

static int reserve_row(worker *self, size_t bytes)
{
    if (bytes <= self->row_bytes)
        return 1;
    free(self->row);
    self->row = malloc(bytes);
    self->row_bytes = self->row == NULL ? 0 : bytes;
    return self->row != NULL;
}

/* May leave through self->escape at any point; apart, so that no variable of its caller is lost on that way. */
__attribute__((noinline)) static void measure(worker *self, penstock_source source, unsigned least_side,
                                              penstock_sums *total)
{
    struct jpeg_decompress_struct *jpeg = &self->jpeg;
    jpeg_mem_src(jpeg, source.bytes, (unsigned long)source.size);
    jpeg_read_header(jpeg, TRUE);
    if (!is_measured(self, least_side))
        return;
    jpeg->scale_num = 1;
    jpeg->scale_denom = 2;
    jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    size_t values = (size_t)jpeg->output_width * CHANNELS;
    if (!reserve_row(self, values))
        return;
    JSAMPROW row = self->row;
    while (jpeg->output_scanline < jpeg->output_height) {
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1)
            return;
        add_row(&self->lanes, row, values, total);
    }
    jpeg_finish_decompress(jpeg);
    add_lanes(&self->lanes, total);
    total->pixels = (uint64_t)jpeg->output_width * jpeg->output_height;
}

static void attempt(worker *self, penstock_source source, unsigned least_side, penstock_sums *total)
{
    memset(total, 0, sizeof *total);
    memset(&self->lanes, 0, sizeof self->lanes);
    if (source.size > 0 && setjmp(self->escape) == 0)
        measure(self, source, least_side, total);
    jpeg_abort_decompress(&self->jpeg);
}

static int start(worker *self)
{
    self->jpeg.err = jpeg_std_error(&self->errors);
    self->errors.error_exit = on_error;
    self->errors.emit_message = on_message;
    self->errors.output_message = be_silent;
    self->jpeg.client_data = self;
    if (setjmp(self->escape) != 0)
        return 0;
    jpeg_create_decompress(&self->jpeg);
    self->jpeg.client_data = self;
    return 1;
}

void penstock_measure_halved(const penstock_source *sources, size_t count, unsigned least_side, penstock_sums *sums)
{
    worker self;
    memset(&self, 0, sizeof self);
    int started = start(&self);
    memset(sums, 0, count * sizeof *sums);
    for (size_t i = 0; started && i < count; i++)
        attempt(&self, sources[i], least_side, &sums[i]);
    free(self.row);
    jpeg_destroy_decompress(&self.jpeg);
}

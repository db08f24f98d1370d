/* JPEGs or raw pixels to finished samples: decode the part that is needed, resize, flip, write. Knows no Python.
 *
 *   orientation.c   the EXIF tag, and what it means for stored pixels
 *   axis.c          which input positions make an output position, and with what weights
 *   resample.c      rows and pixels mixed by those weights
 *   writing.c       finished rows into the output, flipped and normalised; and the fill around them
 *   view.c          one view of rows of pixels: both axes planned, then every row of the sample made
 *   worker.c        memory that is kept from image to image, and how one is left before its end
 *   decode.c        libjpeg-turbo: one image, and a range of them
 *   pixels.c        the same for images that are stored as pixels
 *   planes.h        frames of video, which have their own files
 *   module.c        the face to Python
 */
#ifndef PENSTOCK_KERNEL_H
#define PENSTOCK_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* More pixels than this are refused: a damaged header must not ask for gigabytes. */
#ifndef PENSTOCK_MOST_PIXELS
#define PENSTOCK_MOST_PIXELS (1L << 28)
#endif
/* The longest side of a sample, and of what a sample is a part of. */
#define PENSTOCK_MOST_SIDE 16384
#define PENSTOCK_MOST_RESIZED (1 << 20)
#define PENSTOCK_REASON_BYTES 240
#define PENSTOCK_CHANNELS 3
#define PENSTOCK_LEVELS 256

enum penstock_status {
    PENSTOCK_OTHER = 1, /* not a JPEG of the common kind: somebody else may be able to decode it */
    PENSTOCK_FAILED = 2
};

enum penstock_flip { PENSTOCK_FLIP_HORIZONTAL = 1, PENSTOCK_FLIP_VERTICAL = 2 };

typedef struct {
    const unsigned char *bytes;
    size_t size;
} penstock_source;

/* Where an image of raw pixels begins, and its size; height × width × 3 bytes follow one another. */
typedef struct {
    int64_t buffer, offset, width, height;
} penstock_place;

/* Where an encoded image is in a larger buffer. */
typedef struct {
    int64_t buffer, offset, length;
} penstock_stretch;

/* What a sample shows: a crop of the upright image, at another size, and of that the part that begins at part_x,
 * part_y and is as large as the target. Where the part reaches outside, it is filled. */
typedef struct {
    int64_t x, y, width, height;
    int64_t resized_width, resized_height;
    int64_t part_x, part_y;
} penstock_view;

typedef struct {
    int width, height;
    const float *table; /* 3 × 256: the float of each level of each channel, planes; NULL for interleaved uint8 */
    int fill;           /* the level outside of the resized image */
    int reduce;         /* whether JPEGs at least twice too large are decoded at 1/2, 1/4 or 1/8 */
    int fast;           /* whether JPEGs are decoded with the approximate transform */
} penstock_target;

typedef struct {
    size_t position;
    int status;
    char reason[PENSTOCK_REASON_BYTES];
} penstock_failure;

/* The bytes of one finished sample. */
size_t penstock_sample_bytes(const penstock_target *target);

/* Make `count` samples, one after another in `out`; returns how many failed. `failures` has room for all. */
size_t penstock_decode_range(const penstock_source *sources, const penstock_view *views, const uint8_t *flips,
                             size_t count, const penstock_target *target, void *out, penstock_failure *failures);
size_t penstock_pixels_range(const penstock_source *buffers, size_t buffer_count, const penstock_place *places,
                             const penstock_view *views, const uint8_t *flips, size_t count,
                             const penstock_target *target, void *out, penstock_failure *failures);

#endif

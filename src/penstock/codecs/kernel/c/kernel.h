/* JPEGs to finished samples: decode the part that is needed, resize, turn, flip, write. Plain C, knows no Python.
 *
 *   orientation.c   the EXIF tag, and what it means for crops and writes
 *   axis.c          which input positions make an output position, and with what weights
 *   resample.c      rows and pixels mixed by those weights
 *   writing.c       finished rows into the output, turned, flipped and normalised
 *   decode.c        libjpeg-turbo: one image, and a range of them
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
/* The longest side of a sample. */
#define PENSTOCK_MOST_SIDE 16384
#define PENSTOCK_REASON_BYTES 240
#define PENSTOCK_CHANNELS 3
#define PENSTOCK_LEVELS 256

enum penstock_status {
    PENSTOCK_DONE = 0,
    PENSTOCK_OTHER = 1, /* not a JPEG of the common kind: somebody else may be able to decode it */
    PENSTOCK_FAILED = 2
};

enum penstock_flip { PENSTOCK_FLIP_HORIZONTAL = 1, PENSTOCK_FLIP_VERTICAL = 2 };

typedef struct {
    const unsigned char *bytes;
    size_t size;
} penstock_source;

/* Pixels of the upright image. */
typedef struct {
    int32_t x, y, width, height;
} penstock_crop;

typedef struct {
    int width, height;
    const float *table; /* 3 × 256: the float of each level of each channel, planes; NULL for interleaved uint8 */
    int reduce;         /* whether images at least twice too large are decoded at 1/2, 1/4 or 1/8 */
} penstock_target;

typedef struct {
    int status;
    char reason[PENSTOCK_REASON_BYTES];
} penstock_result;

/* The bytes of one finished sample. */
size_t penstock_sample_bytes(const penstock_target *target);

/* Decode `count` sources into `out`, one sample after another; every source gets a result. */
void penstock_decode_range(const penstock_source *sources, const penstock_crop *crops, const uint8_t *flips,
                           size_t count, const penstock_target *target, void *out, penstock_result *results);

#endif

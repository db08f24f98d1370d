/* What the header of a JPEG says, where it needs no second look. Plain C, knows no Python. */
#ifndef PENSTOCK_JPEG_HEADERS_H
#define PENSTOCK_JPEG_HEADERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t width, height, channels, bits;
} penstock_header;

/* The header of a JPEG without EXIF, which may turn it. Answers 0 for that, for damage and for all that is no JPEG. */
int penstock_plain_jpeg(const uint8_t *data, size_t size, penstock_header *header);

#endif

/* The markers of a JPEG up to its frame, as codecs/headers.py goes through them. */
#include "jpeg_headers.h"

enum { END_OF_IMAGE = 0xD9, START_OF_SCAN = 0xDA, EXIF = 0xE1 };

static int is_alone(uint8_t marker)
{
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

static int is_frame(uint8_t marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

static int64_t two_bytes(const uint8_t *data)
{
    return data[0] << 8 | data[1];
}

/* What stands behind the marker of a frame: length, bits, height, width, channels. */
static int frame_header(const uint8_t *data, size_t size, penstock_header *header)
{
    if (size < 8)
        return 0;
    *header = (penstock_header){two_bytes(data + 5), two_bytes(data + 3), data[7], data[2]};
    return header->width > 0 && header->height > 0;
}

int penstock_plain_jpeg(const uint8_t *data, size_t size, penstock_header *header)
{
    size_t position = 2;
    if (size < 4 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF)
        return 0;
    while (size - position >= 4 && data[position] == 0xFF) {
        const uint8_t *behind = data + position + 2;
        uint8_t marker = data[position + 1];
        if (marker == 0xFF) {
            position += 1;
            continue;
        }
        if (is_alone(marker)) {
            position += 2;
            continue;
        }
        if (is_frame(marker))
            return frame_header(behind, size - position - 2, header);
        if (marker == END_OF_IMAGE || marker == START_OF_SCAN || marker == EXIF)
            return 0;
        size_t step = 2 + (size_t)two_bytes(behind);
        if (step > size - position)
            return 0;
        position += step;
    }
    return 0;
}

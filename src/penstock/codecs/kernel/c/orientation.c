#include "orientation.h"

#include <string.h>

enum { CHANNELS = 3 };
enum { MARKER_EXIF = 0xE1, MARKER_END = 0xD9, MARKER_SCAN = 0xDA, TAG_ORIENTATION = 0x0112, KIND_SHORT = 3 };

typedef struct {
    const unsigned char *bytes;
    size_t size;
    int little_endian;
} block;

static unsigned read_two(const block *from, size_t at)
{
    const unsigned char *bytes = from->bytes + at;
    return from->little_endian ? bytes[0] | (unsigned)bytes[1] << 8 : (unsigned)bytes[0] << 8 | bytes[1];
}

static uint32_t read_four(const block *from, size_t at)
{
    uint32_t first = read_two(from, at), second = read_two(from, at + 2);
    return from->little_endian ? first | second << 16 : first << 16 | second;
}

/* The orientation in a TIFF directory; 1 for anything that does not fit. */
static unsigned directory_orientation(block tiff)
{
    if (tiff.size < 8)
        return 1;
    tiff.little_endian = memcmp(tiff.bytes, "II*\0", 4) == 0;
    if (!tiff.little_endian && memcmp(tiff.bytes, "MM\0*", 4) != 0)
        return 1;
    size_t start = read_four(&tiff, 4);
    if (start > tiff.size - 2)
        return 1;
    unsigned entries = read_two(&tiff, start);
    for (size_t entry = start + 2; entries > 0; entries--, entry += 12) {
        if (entry + 10 > tiff.size)
            return 1;
        if (read_two(&tiff, entry) == TAG_ORIENTATION && read_two(&tiff, entry + 2) == KIND_SHORT)
            return read_two(&tiff, entry + 8);
    }
    return 1;
}

static int is_frame(unsigned marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

static int stands_alone(unsigned marker)
{
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
}

/* Walks the segments before the frame; the last EXIF block counts. */
static unsigned exif_orientation(const unsigned char *bytes, size_t size)
{
    block file = {bytes, size, 0};
    unsigned orientation = 1;
    size_t at = 2;
    while (size >= 4 && at <= size - 4) {
        unsigned marker = bytes[at + 1];
        if (bytes[at] != 0xFF || marker == MARKER_END || marker == MARKER_SCAN || is_frame(marker))
            break;
        if (marker == 0xFF) {
            at += 1;
            continue;
        }
        if (stands_alone(marker)) {
            at += 2;
            continue;
        }
        size_t length = read_two(&file, at + 2);
        if (length > size - at - 2)
            break;
        if (marker == MARKER_EXIF && length >= 8 && memcmp(bytes + at + 4, "Exif\0\0", 6) == 0)
            orientation = directory_orientation((block){bytes + at + 10, length - 8, 0});
        at += 2 + length;
    }
    return orientation;
}

penstock_turn penstock_read_turn(const unsigned char *bytes, size_t size)
{
    unsigned orientation = exif_orientation(bytes, size);
    if (orientation < 1 || orientation > 8)
        orientation = 1;
    penstock_turn turn;
    turn.transposed = orientation >= 5;
    turn.columns_reversed = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    turn.rows_reversed = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    return turn;
}

int penstock_is_upright(penstock_turn turn)
{
    return !turn.transposed && !turn.columns_reversed && !turn.rows_reversed;
}

penstock_area penstock_stored_area(penstock_area area, int upright_width, int upright_height, penstock_turn turn)
{
    if (turn.columns_reversed)
        area.x = upright_width - area.x - area.width;
    if (turn.rows_reversed)
        area.y = upright_height - area.y - area.height;
    if (turn.transposed)
        area = (penstock_area){area.y, area.x, area.height, area.width};
    return area;
}

void penstock_turn_row(uint8_t *upright, const uint8_t *pixels, int row, penstock_area stored, penstock_turn turn)
{
    ptrdiff_t width = turn.transposed ? stored.height : stored.width;
    ptrdiff_t height = turn.transposed ? stored.width : stored.height;
    ptrdiff_t across = turn.columns_reversed ? -1 : 1, down = turn.rows_reversed ? -width : width;
    ptrdiff_t start = (turn.columns_reversed ? width - 1 : 0) + (turn.rows_reversed ? (height - 1) * width : 0);
    ptrdiff_t step = turn.transposed ? down : across;
    uint8_t *pixel = upright + CHANNELS * (start + row * (turn.transposed ? across : down));
    for (int i = 0; i < stored.width; i++, pixels += CHANNELS)
        memcpy(pixel + CHANNELS * step * i, pixels, CHANNELS);
}

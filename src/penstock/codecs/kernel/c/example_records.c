/* Lengths first, from the inside out; then the bytes, from the front. */
#include "example_records.h"

#include <string.h>

#include "crc32c.h"
#include "records.h"

/* Field 1 or 2 of a message, with a length. */
enum { FIRST = 0x0A, SECOND = 0x12 };

/* What is counted on the wire, each inside of the next. */
typedef struct {
    size_t list, feature, entry, example, payload;
} lengths;

static size_t varint_bytes(size_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

/* A tag, a length, and so many bytes. */
static size_t counted(size_t size)
{
    return 1 + varint_bytes(size) + size;
}

static lengths lengths_of(const penstock_piece *pieces, size_t name_size)
{
    lengths of;
    of.list = counted(pieces[PENSTOCK_CONTENT].size);
    of.feature = counted(of.list);
    of.entry = counted(name_size) + counted(of.feature);
    of.example = pieces[PENSTOCK_EARLIER].size + counted(of.entry) + pieces[PENSTOCK_LATER].size;
    of.payload = counted(of.example);
    return of;
}

size_t penstock_size_before(const penstock_piece *pieces, penstock_piece name)
{
    size_t rest = pieces[PENSTOCK_CONTENT].size + pieces[PENSTOCK_LATER].size;
    return PENSTOCK_RECORD_HEAD + lengths_of(pieces, name.size).payload - rest;
}

size_t penstock_size_behind(const penstock_piece *pieces)
{
    return pieces[PENSTOCK_LATER].size + PENSTOCK_RECORD_TAIL;
}

static uint8_t *put_bytes(uint8_t *out, penstock_piece piece)
{
    if (piece.size)
        memcpy(out, piece.bytes, piece.size);
    return out + piece.size;
}

static uint8_t *put_count(uint8_t *out, uint8_t tag, size_t size)
{
    *out++ = tag;
    for (; size >= 0x80; size >>= 7)
        *out++ = (uint8_t)(size | 0x80);
    *out++ = (uint8_t)size;
    return out;
}

static void put_little(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

void penstock_put_before(const penstock_piece *pieces, penstock_piece name, uint8_t *before)
{
    lengths of = lengths_of(pieces, name.size);
    put_little(before, of.payload, 8);
    put_little(before + 8, penstock_masked_crc32c(before, 8), 4);
    uint8_t *out = put_count(before + PENSTOCK_RECORD_HEAD, FIRST, of.example);
    out = put_bytes(out, pieces[PENSTOCK_EARLIER]);
    out = put_count(out, FIRST, of.entry);
    out = put_bytes(put_count(out, FIRST, name.size), name);
    out = put_count(out, SECOND, of.feature);
    out = put_count(out, FIRST, of.list);
    put_count(out, FIRST, pieces[PENSTOCK_CONTENT].size);
}

void penstock_put_behind(const penstock_piece *pieces, const uint8_t *before, size_t before_size, uint8_t *behind)
{
    penstock_piece content = pieces[PENSTOCK_CONTENT];
    uint8_t *end = put_bytes(behind, pieces[PENSTOCK_LATER]);
    uint32_t crc = penstock_crc32c(0, before + PENSTOCK_RECORD_HEAD, before_size - PENSTOCK_RECORD_HEAD);
    crc = penstock_crc32c(crc, content.bytes, content.size);
    crc = penstock_crc32c(crc, behind, pieces[PENSTOCK_LATER].size);
    put_little(end, penstock_mask(crc), PENSTOCK_RECORD_TAIL);
}

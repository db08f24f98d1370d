#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64 /* else files above 2 GB are out of reach where a long has 32 bits */

#include "tiles.h"

const char *penstock_tiles_problem(const penstock_tiles *tiles, const penstock_rows *rows)
{
    if (rows->count < 1 || rows->row_bytes < 1)
        return "there are no rows to fill";
    if (tiles->row_bytes < 1 || tiles->row_bytes > INT64_MAX / rows->count)
        return "a row of a tile cannot have so many bytes";
    if (tiles->left_bytes < 0 || tiles->left_bytes >= tiles->row_bytes)
        return "the image does not begin in the first tile";
    uint64_t last = ((uint64_t)tiles->left_bytes + (uint64_t)rows->row_bytes - 1) / (uint64_t)tiles->row_bytes;
    if (tiles->count == 0 || last != tiles->count - 1)
        return "the image does not end in the last tile";
    for (size_t i = 0; i < tiles->count; i++)
        if (tiles->offsets[i] < 0 || tiles->offsets[i] > INT64_MAX - rows->count * tiles->row_bytes)
            return "a tile begins where no file reaches";
    return NULL;
}

#ifndef _WIN32

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is read at once, and stays in the second cache of a processor until it is dealt out. To preadv straight into the
 * image is no faster: a place of its own for each row of a tile costs the system as much as a second copy. */
#define TOGETHER_BYTES (256 << 10)

typedef struct {
    int descriptor;
    int64_t row_bytes; /* of a tile */
    uint8_t *memory;
    int64_t together; /* rows for which there is memory */
} reading;

/* A read may be interrupted, and may give less than was asked for. */
static penstock_tiles_answer fill(const reading *self, int64_t offset, size_t size)
{
    uint8_t *out = self->memory;
    while (size > 0) {
        ssize_t count = pread(self->descriptor, out, size, offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? PENSTOCK_TILES_FAILED : PENSTOCK_TILES_ENDED;
        out += count;
        offset += count;
        size -= (size_t)count;
    }
    return PENSTOCK_TILES_DONE;
}

/* The rows of one tile, some at a time, and of each what is in the image. */
static penstock_tiles_answer read_tile(const reading *self, int64_t offset, int64_t left_bytes,
                                       const penstock_rows *rows)
{
    for (int64_t first = 0; first < rows->count; first += self->together) {
        int64_t count = rows->count - first < self->together ? rows->count - first : self->together;
        size_t size = (size_t)(count * self->row_bytes);
        penstock_tiles_answer answer = fill(self, offset + first * self->row_bytes, size);
        if (answer != PENSTOCK_TILES_DONE)
            return answer;
        for (int64_t i = 0; i < count; i++)
            memcpy(rows->bytes + (first + i) * rows->line, self->memory + i * self->row_bytes + left_bytes,
                   (size_t)rows->row_bytes);
    }
    return PENSTOCK_TILES_DONE;
}

static penstock_tiles_answer read_all(const reading *self, const penstock_tiles *tiles, const penstock_rows *rows)
{
    penstock_tiles_answer answer = PENSTOCK_TILES_DONE;
    int64_t left_bytes = tiles->left_bytes, x = 0;
    for (size_t i = 0; i < tiles->count && answer == PENSTOCK_TILES_DONE; i++) {
        int64_t seen = tiles->row_bytes - left_bytes, room = rows->row_bytes - x;
        penstock_rows part = {rows->bytes + x, rows->count, seen < room ? seen : room, rows->line};
        answer = read_tile(self, tiles->offsets[i], left_bytes, &part);
        x += seen;
        left_bytes = 0;
    }
    return answer;
}

penstock_tiles_answer penstock_read_tiles(int descriptor, const penstock_tiles *tiles, const penstock_rows *rows)
{
    int64_t together = tiles->row_bytes < TOGETHER_BYTES ? TOGETHER_BYTES / tiles->row_bytes : 1;
    reading self = {descriptor, tiles->row_bytes, malloc((size_t)(together * tiles->row_bytes)), together};
    if (self.memory == NULL)
        return PENSTOCK_TILES_FAILED;
    penstock_tiles_answer answer = read_all(&self, tiles, rows);
    free(self.memory);
    return answer;
}

#else

penstock_tiles_answer penstock_read_tiles(int descriptor, const penstock_tiles *tiles, const penstock_rows *rows)
{
    (void)descriptor, (void)tiles, (void)rows;
    return PENSTOCK_TILES_LEFT;
}

#endif

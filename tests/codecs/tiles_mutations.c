/* Rows of tiles out of a file that answers as it likes, without Python, with sizes that fit and that do not: built with
 * sanitizers, it must end with 0.
 *
 * tiles_mutations COUNT; prints how many images were filled, how many met the end of the file, how many could not be
 * read, and how many were refused.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES (2 << 20)
#define MOST_TILES 5
#define UNTOUCHED 0xAA

static uint8_t file[FILE_BYTES];
static uint64_t state = 5;

static int64_t below(int64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* Interrupted, broken, or with less than was asked for. */
static ssize_t odd_read(int descriptor, void *out, size_t size, off_t offset)
{
    (void)descriptor;
    if (below(8) == 0) {
        errno = below(20) ? EINTR : EIO;
        return -1;
    }
    if (offset >= FILE_BYTES)
        return 0;
    if (size > (size_t)(FILE_BYTES - offset))
        size = (size_t)(FILE_BYTES - offset);
    if (below(3) == 0)
        size = 1 + (size_t)below((int64_t)size);
    memcpy(out, file + offset, size);
    return (ssize_t)size;
}

#define pread odd_read
#include "tiles.c"

static int64_t any_number(void)
{
    static const int64_t numbers[] = {-1, 0, 1, 2, 17, 1 << 18, 1 << 20, INT64_MIN, INT64_MAX, INT64_MAX / 2};
    return numbers[below((int64_t)(sizeof numbers / sizeof *numbers))];
}

/* Whether every byte is that of its tile, and what lies between the rows is as it was. */
static int is_right(const penstock_tiles *tiles, const penstock_rows *rows)
{
    for (int64_t y = 0; y < rows->count; y++) {
        const uint8_t *row = rows->bytes + y * rows->line;
        for (int64_t x = 0; x < rows->row_bytes; x++) {
            int64_t place = x + tiles->left_bytes;
            int64_t offset = tiles->offsets[place / tiles->row_bytes] + place % tiles->row_bytes;
            if (row[x] != file[offset + y * tiles->row_bytes])
                return 0;
        }
        for (int64_t x = rows->row_bytes; y + 1 < rows->count && x < rows->line; x++)
            if (row[x] != UNTOUCHED)
                return 0;
    }
    return 1;
}

/* Which of the counts it belongs to. Memory is exactly as large as the rows, so that a byte too far is seen. */
static int filled(const penstock_tiles *tiles, penstock_rows rows)
{
    size_t size = (size_t)((rows.count - 1) * rows.line + rows.row_bytes);
    rows.bytes = malloc(size);
    memset(rows.bytes, UNTOUCHED, size);
    penstock_tiles_answer answer = penstock_read_tiles(0, tiles, &rows);
    if (answer == PENSTOCK_TILES_LEFT || (answer == PENSTOCK_TILES_DONE && !is_right(tiles, &rows)))
        exit(3);
    free(rows.bytes);
    return answer == PENSTOCK_TILES_DONE ? 0 : answer == PENSTOCK_TILES_ENDED ? 1 : 2;
}

static int try_tiles(void)
{
    int64_t offsets[MOST_TILES];
    penstock_tiles tiles = {offsets, (size_t)(1 + below(MOST_TILES)), 1 + below(below(8) ? 300 : 200000), 0};
    int64_t end = ((int64_t)tiles.count - 1) * tiles.row_bytes + 1 + below(tiles.row_bytes);
    tiles.left_bytes = below(end < tiles.row_bytes ? end : tiles.row_bytes);
    penstock_rows rows = {NULL, 1 + below(9), end - tiles.left_bytes, 0};
    rows.line = rows.row_bytes + below(3) * 7;
    for (size_t i = 0; i < tiles.count; i++)
        offsets[i] = below(below(30) ? FILE_BYTES / 2 : FILE_BYTES * 2);
    int64_t *numbers[] = {&tiles.row_bytes, &tiles.left_bytes, &offsets[below((int64_t)tiles.count)]};
    if (below(4) == 0)
        *numbers[below(3)] = any_number();
    return penstock_tiles_problem(&tiles, &rows) ? 3 : filled(&tiles, rows);
}

int main(int argc, char **argv)
{
    int counts[4] = {0};
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (uint8_t)below(256);
    for (int i = atoi(argv[1]); i > 0; i--)
        counts[try_tiles()]++;
    printf("%d %d %d %d\n", counts[0], counts[1], counts[2], counts[3]);
    return 0;
}

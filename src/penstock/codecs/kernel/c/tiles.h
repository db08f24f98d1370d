/* Rows of uncompressed tiles, out of a file into an image. Plain C, knows no Python. */
#ifndef PENSTOCK_TILES_H
#define PENSTOCK_TILES_H

#include <stddef.h>
#include <stdint.h>

/* Tiles beside one another, of which the same rows are wanted. */
typedef struct {
    const int64_t *offsets; /* where the first wanted row of each tile begins in the file; the others follow it */
    size_t count;
    int64_t row_bytes, left_bytes; /* of a row of any tile; of the first one, what lies left of the image */
} penstock_tiles;

/* Rows of an image, with so many bytes from one to the next. */
typedef struct {
    uint8_t *bytes;
    int64_t count, row_bytes, line;
} penstock_rows;

typedef enum {
    PENSTOCK_TILES_DONE,
    PENSTOCK_TILES_LEFT,  /* to the caller: not on this system */
    PENSTOCK_TILES_ENDED, /* the file, before the last of them */
    PENSTOCK_TILES_FAILED /* errno says why */
} penstock_tiles_answer;

/* Why tiles cannot fill these rows; NULL where they can. */
const char *penstock_tiles_problem(const penstock_tiles *tiles, const penstock_rows *rows);

/* Fill rows with tiles that have no problem. */
penstock_tiles_answer penstock_read_tiles(int descriptor, const penstock_tiles *tiles, const penstock_rows *rows);

#endif

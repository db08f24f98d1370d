/* Frames of video, 8 bits and planar YUV, to small RGB in one step. Knows no Python.
 *
 *   plane ──rows mixed──► one row ──columns mixed──► one row of the size ──with the other two planes──► RGB
 *
 *   plane_side.c     which values of a plane make one of the size, and with what weights
 *   plane_mixing.c   rows and columns mixed by those weights
 *   plane_colours.c  rows of YUV to RGB
 *   planes.c         memory, and all of it in order
 */
#ifndef PENSTOCK_PLANES_H
#define PENSTOCK_PLANES_H

#include <stddef.h>
#include <stdint.h>

#define PENSTOCK_PLANES 3
/* The longest side of a frame or of what is made of it. */
#define PENSTOCK_MOST_FRAME_SIDE 16384
/* The scale of the numbers of a matrix: that of luma is at most 2, the others 3. */
#define PENSTOCK_MATRIX_BITS 13

typedef struct {
    const uint8_t *bytes;
    int64_t size, line; /* of all lines, and from one line to the next */
} penstock_plane;

/* How chroma lies along one side: one value for 2^bits pixels, in their centre or so many quarters of a value before
 * it. */
typedef struct {
    int bits, quarters;
} penstock_chroma;

/* A window of a frame, in pixels of luma. */
typedef struct {
    penstock_plane planes[PENSTOCK_PLANES]; /* luma, blue chroma, red chroma */
    int x, y, width, height;
    penstock_chroma across, down;
} penstock_picture;

/* From YUV to RGB, times 2^PENSTOCK_MATRIX_BITS; black is 16 in limited range and 0 in full. */
typedef struct {
    int black, luma, red_of_v, green_of_u, green_of_v, blue_of_u;
} penstock_matrix;

/* Why a picture cannot be made; NULL where it can. */
const char *penstock_planes_problem(const penstock_picture *picture, const penstock_matrix *matrix, int width,
                                    int height);

/* Make width × height × 3 bytes of a picture without problems; 0 where there is no memory for it. */
int penstock_planes_to_rgb(const penstock_picture *picture, const penstock_matrix *matrix, int width, int height,
                           uint8_t *out);

#endif

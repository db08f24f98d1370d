/* Planes of YUV to RGB without Python, with sizes and numbers that fit and that do not: built with sanitizers, it must
 * end with 0.
 *
 * planes_mutations COUNT; prints how many pictures were made, how many refused, and a checksum of all pixels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "planes.h"

static uint64_t state = 11;

static int below(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

/* Exactly as large as it says: reading past the end is seen. */
static penstock_plane make_plane(int width, int height)
{
    int line = width + below(3) * 8;
    penstock_plane plane = {NULL, (int64_t)line * (height - 1) + width, line};
    uint8_t *bytes = malloc((size_t)plane.size);
    for (int64_t i = 0; i < plane.size; i++)
        bytes[i] = (uint8_t)below(256);
    plane.bytes = bytes;
    return plane;
}

static int any_number(void)
{
    static const int numbers[] = {-1, 0, 1, 2, 3, 17, 1 << 13, 1 << 14, 1 << 15, -(1 << 15), 1 << 30, -(1 << 30)};
    return numbers[below((int)(sizeof numbers / sizeof *numbers))];
}

/* One number of those that say where things are becomes any other. */
static void damage(penstock_picture *picture, penstock_matrix *matrix, int *width, int *height)
{
    int *places[] = {&picture->x,           &picture->y,         &picture->width,         &picture->height,
                     &picture->across.bits, &picture->down.bits, &picture->down.quarters, &matrix->black,
                     &matrix->luma,         &matrix->red_of_v,   &matrix->green_of_u,     width,
                     height};
    int which = below(2 + (int)(sizeof places / sizeof *places));
    if (which < 2)
        picture->planes[below(PENSTOCK_PLANES)].line = any_number();
    else
        *places[which - 2] = any_number();
}

static uint64_t made_of(const penstock_picture *picture, const penstock_matrix *matrix, int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height * 3;
    uint64_t sum = 0;
    uint8_t *out = malloc(bytes);
    if (!penstock_planes_to_rgb(picture, matrix, width, height, out))
        exit(2);
    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + out[i];
    free(out);
    return sum;
}

static int try_picture(uint64_t *sum)
{
    penstock_matrix matrix = {16, 9539, 13075, -3209, -6660, 16525};
    penstock_picture picture = {.across = {below(2), below(3) - 1}, .down = {below(2), below(3) - 1}};
    picture.x = below(4) << picture.across.bits;
    picture.y = below(4) << picture.down.bits;
    picture.width = (1 + below(60)) << picture.across.bits;
    picture.height = (1 + below(40)) << picture.down.bits;
    int width = 1 + below(picture.width), height = 1 + below(picture.height);
    for (int i = 0; i < PENSTOCK_PLANES; i++)
        picture.planes[i] = make_plane((picture.x + picture.width) >> (i ? picture.across.bits : 0),
                                       (picture.y + picture.height) >> (i ? picture.down.bits : 0));
    penstock_picture given = picture;
    if (below(2))
        damage(&given, &matrix, &width, &height);
    int made = penstock_planes_problem(&given, &matrix, width, height) == NULL;
    if (made)
        *sum = *sum * 31 + made_of(&given, &matrix, width, height);
    for (int i = 0; i < PENSTOCK_PLANES; i++)
        free((void *)picture.planes[i].bytes);
    return made;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int tries = atoi(argv[1]), made = 0;
    uint64_t sum = 0;
    for (int i = 0; i < tries; i++)
        made += try_picture(&sum);
    printf("%d %d %llu\n", made, tries - made, (unsigned long long)sum);
    return 0;
}

/* Damaged TFRecords and Examples, without Python: built with sanitizers, it must end with 0.
 *
 * records_mutations COUNT FILE; prints how many files were found whole and how many not, and Examples the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "example_records.h"
#include "records.h"

#define ROOM 64

static uint64_t state = 7;

static size_t below(size_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((state >> 33) % limit);
}

static void damage(uint8_t *data, size_t size)
{
    for (size_t times = below(4); size > 0 && times > 0; times--)
        data[below(size)] = (uint8_t)below(256);
}

/* In memory that is exactly as large, so that a byte too far is noticed. */
static uint8_t *copied(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, data, size);
    return copy;
}

static int scan_is_whole(const uint8_t *data, size_t size)
{
    penstock_span places[ROOM];
    size_t position = 0, found = 0;
    int why;
    do {
        why = penstock_scan_records(data, size, &position, places, 1 + below(ROOM), &found);
        for (size_t i = 0; i < found; i++)
            if (!penstock_record_is_whole(data, places[i]))
                return 0;
    } while (why == PENSTOCK_SCAN_FULL);
    return why == PENSTOCK_SCAN_END;
}

static int finds_features(const uint8_t *data, size_t size)
{
    static const penstock_name names[] = {{(const uint8_t *)"image", 5}, {(const uint8_t *)"label", 5}, {NULL, 0}};
    penstock_feature features[3];
    if (!penstock_find_features(data, (penstock_span){0, (int64_t)size}, names, 3, features))
        return 0;
    for (int i = 0; i < 3; i++)
        if (features[i].size > 0 && (features[i].offset < 0 || features[i].offset + features[i].size > (int64_t)size))
            exit(3);
    return 1;
}

/* A record around random bytes, each part in memory that is exactly as large: whole, and the bytes are found in it. */
static void write_once(const uint8_t *seed, size_t size)
{
    penstock_piece pieces[PENSTOCK_PIECES], name = {(const uint8_t *)"image", 5};
    for (int i = 0; i < PENSTOCK_PIECES; i++) {
        size_t length = i == PENSTOCK_CONTENT ? below(below(2) ? size : 200) : 0;
        pieces[i] = (penstock_piece){copied(seed, length), length};
    }
    size_t before = penstock_size_before(pieces, name), content = pieces[PENSTOCK_CONTENT].size;
    size_t behind = penstock_size_behind(pieces), position = 0, found = 0;
    uint8_t *record = malloc(before + content + behind), *start = malloc(before), *end = malloc(behind);
    penstock_put_before(pieces, name, start);
    penstock_put_behind(pieces, start, before, end);
    memcpy(record, start, before);
    memcpy(record + before, pieces[PENSTOCK_CONTENT].bytes, content);
    memcpy(record + before + content, end, behind);
    penstock_span place;
    penstock_feature feature;
    penstock_scan_records(record, before + content + behind, &position, &place, 1, &found);
    if (found != 1 || position != before + content + behind || !penstock_record_is_whole(record, place))
        exit(4);
    penstock_name wanted = {name.bytes, name.size};
    if (!penstock_find_features(record, place, &wanted, 1, &feature) || feature.size != (int64_t)content)
        exit(5);
    for (int i = 0; i < PENSTOCK_PIECES; i++)
        free((void *)pieces[i].bytes);
    free(record);
    free(start);
    free(end);
}

static void try_once(const uint8_t *seed, size_t size, penstock_span first, size_t counts[4])
{
    size_t kept = below(4) ? size : below(size + 1);
    uint8_t *file = copied(seed, kept);
    damage(file, below(2) ? kept : 0);
    counts[!scan_is_whole(file, kept)]++;
    free(file);
    size_t length = below(4) ? (size_t)first.length : below((size_t)first.length + 1);
    uint8_t *payload = copied(seed + first.offset, length);
    damage(payload, length);
    counts[2 + !finds_features(payload, length)]++;
    free(payload);
}

int main(int argc, char **argv)
{
    static uint8_t seed[1 << 16];
    size_t counts[4] = {0}, position = 0, found;
    penstock_span first;
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (file == NULL)
        return 1;
    size_t size = fread(seed, 1, sizeof seed, file);
    fclose(file);
    penstock_crc32c_prepare();
    if (penstock_crc32c(0, seed, size) != penstock_crc32c_by_tables(0, seed, size))
        return 2;
    penstock_scan_records(seed, size, &position, &first, 1, &found);
    for (long tries = atol(argv[1]); tries > 0; tries--) {
        try_once(seed, size, first, counts);
        write_once(seed, size);
    }
    printf("%zu %zu %zu %zu\n", counts[0], counts[1], counts[2], counts[3]);
    return 0;
}

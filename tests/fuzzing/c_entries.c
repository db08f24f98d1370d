/* The C entry points that read bytes of others, for libFuzzer: any input, no crash, and nothing outside of it.
 *
 * The first byte says which: TFRecords and Examples, or JPEGs (headers, measuring, decoding into a small view).
 */
#include <stdlib.h>
#include <string.h>

#include "jpeg_headers.h"
#include "kernel.h"
#include "measure.h"
#include "records.h"

enum { ROOM = 16 };

static void read_records(const uint8_t *data, size_t size)
{
    static const penstock_name names[] = {{(const uint8_t *)"image", 5}, {(const uint8_t *)"label", 5}};
    penstock_span places[ROOM];
    penstock_feature features[2];
    size_t position = 0, found = 0;
    int why;
    do {
        why = penstock_scan_records(data, size, &position, places, ROOM, &found);
        for (size_t i = 0; i < found; i++)
            penstock_record_is_whole(data, places[i]);
    } while (why == PENSTOCK_SCAN_FULL);
    if (!penstock_find_features(data, (penstock_span){0, (int64_t)size}, names, 2, features))
        return;
    for (int i = 0; i < 2; i++)
        if (features[i].size > 0 && (features[i].offset < 0 || features[i].offset + features[i].size > (int64_t)size))
            abort();
}

static void read_jpeg(const uint8_t *data, size_t size)
{
    penstock_source source = {data, size};
    penstock_header header;
    penstock_sums sums;
    if (penstock_plain_jpeg(data, size, &header) && (header.width < 1 || header.height < 1))
        abort();
    penstock_measure_halved(&source, 1, 20, &sums);
    penstock_target target = {24, 16, NULL, 0, 0, 0};
    penstock_view view = {.width = 40, .height = 30, .resized_width = 24, .resized_height = 16};
    uint8_t flip = 0;
    penstock_failure failure;
    void *out = malloc(penstock_sample_bytes(&target));
    if (out != NULL)
        penstock_decode_range(&source, &view, &flip, 1, &target, out, &failure);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (data[0] == 'R')
        read_records(data + 1, size - 1);
    else
        read_jpeg(data + 1, size - 1);
    return 0;
}

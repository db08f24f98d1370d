/* TFRecord files in memory: where records are, whether they are whole, what is in them. Plain C, knows no Python.
 *
 *   8 bytes length │ 4 bytes masked crc of the length │ payload │ 4 bytes masked crc of the payload      little endian
 */
#ifndef PENSTOCK_RECORDS_H
#define PENSTOCK_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define PENSTOCK_RECORD_HEAD 12
#define PENSTOCK_RECORD_TAIL 4

enum {
    PENSTOCK_SCAN_END,      /* the file ended after a whole record */
    PENSTOCK_SCAN_FULL,     /* there was no room for more places */
    PENSTOCK_SCAN_CUT,      /* the file ends inside a record */
    PENSTOCK_SCAN_DAMAGED   /* the checksum of a length does not fit */
};

/* Payloads, as offset and length. */
typedef struct {
    int64_t offset, length;
} penstock_span;

/* The same, in one of several files. */
typedef struct {
    int64_t buffer, offset, length;
} penstock_record;

/* Fill places from byte `*position` on, which is moved behind the last whole record. Answers one of PENSTOCK_SCAN_*. */
int penstock_scan_records(const uint8_t *data, size_t size, size_t *position, penstock_span *places, size_t room,
                          size_t *found);

/* Whether the payload has its checksum behind it; the caller knows that both are inside of the file. */
int penstock_record_is_whole(const uint8_t *data, penstock_span place);

enum { PENSTOCK_ABSENT, PENSTOCK_BYTES, PENSTOCK_FLOATS, PENSTOCK_INTEGERS, PENSTOCK_EMPTY };

/* One feature of a tf.train.Example: its kind, where its first value is (packed numbers: where they begin), how many
 * bytes that has, how many values there are, and the first whole number. */
typedef struct {
    int64_t kind, offset, size, count, first;
} penstock_feature;

typedef struct {
    const uint8_t *text;
    size_t size;
} penstock_name;

/* Fill one feature for each name, PENSTOCK_ABSENT where there is none; the last of equal names counts, as in
 * protobuf. Answers 0 where the payload is no Example. */
int penstock_find_features(const uint8_t *data, penstock_span place, const penstock_name *names, size_t count,
                           penstock_feature *features);

#endif

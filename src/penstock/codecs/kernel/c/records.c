#include "records.h"

#include <string.h>

#include "crc32c.h"

static uint64_t little(const uint8_t *data, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | data[i];
    return value;
}

int penstock_scan_records(const uint8_t *data, size_t size, size_t *position, penstock_span *places, size_t room,
                          size_t *found)
{
    for (*found = 0; *position < size; (*found)++) {
        const uint8_t *head = data + *position;
        size_t left = size - *position;
        if (*found == room)
            return PENSTOCK_SCAN_FULL;
        if (left < PENSTOCK_RECORD_HEAD)
            return PENSTOCK_SCAN_CUT;
        if (penstock_masked_crc32c(head, 8) != little(head + 8, 4))
            return PENSTOCK_SCAN_DAMAGED;
        uint64_t length = little(head, 8);
        left -= PENSTOCK_RECORD_HEAD;
        if (left < PENSTOCK_RECORD_TAIL || length > left - PENSTOCK_RECORD_TAIL)
            return PENSTOCK_SCAN_CUT;
        *position += PENSTOCK_RECORD_HEAD;
        places[*found] = (penstock_span){(int64_t)*position, (int64_t)length};
        *position += (size_t)length + PENSTOCK_RECORD_TAIL;
    }
    return PENSTOCK_SCAN_END;
}

int penstock_record_is_whole(const uint8_t *data, penstock_span place)
{
    const uint8_t *payload = data + place.offset;
    return penstock_masked_crc32c(payload, (size_t)place.length) == little(payload + place.length, 4);
}

/* A message of protobuf, read from `at` to `end`. */
typedef struct {
    const uint8_t *at, *end;
} message;

enum { VARINT = 0, FIXED64 = 1, COUNTED = 2, FIXED32 = 5 };

static int read_varint(message *in, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return 1;
    }
    return 0;
}

static int take(message *in, uint64_t bytes, message *content)
{
    if (bytes > (uint64_t)(in->end - in->at))
        return 0;
    *content = (message){in->at, in->at + bytes};
    in->at += bytes;
    return 1;
}

/* The next field: its number, wire type, and content; a varint is its own content. */
static int next_field(message *in, uint64_t *number, int *type, message *content)
{
    uint64_t tag, bytes = 0;
    if (!read_varint(in, &tag))
        return 0;
    *number = tag >> 3;
    *type = (int)(tag & 7);
    content->at = in->at;
    switch (*type) {
    case VARINT:
        return read_varint(in, &bytes) && (content->end = in->at, 1);
    case FIXED64:
        return take(in, 8, content);
    case FIXED32:
        return take(in, 4, content);
    case COUNTED:
        return read_varint(in, &bytes) && take(in, bytes, content);
    default:
        return 0;
    }
}

static int add_bytes(message list, penstock_feature *feature, const uint8_t *start)
{
    uint64_t number;
    int type;
    message value;
    while (list.at < list.end) {
        if (!next_field(&list, &number, &type, &value))
            return 0;
        if (number != 1 || type != COUNTED)
            continue;
        if (feature->count++ == 0) {
            feature->offset = value.at - start;
            feature->size = value.end - value.at;
        }
    }
    return 1;
}

/* Numbers stand in one packed stretch; where they come in pieces, size is −1 and only their count is known. */
static void note_stretch(penstock_feature *feature, message stretch, int is_packed, const uint8_t *start)
{
    int is_first = feature->count == 0 && feature->size == 0;
    feature->size = is_first && is_packed ? stretch.end - stretch.at : -1;
    if (is_first)
        feature->offset = stretch.at - start;
}

static int add_floats(message list, penstock_feature *feature, const uint8_t *start)
{
    uint64_t number;
    int type;
    message value;
    while (list.at < list.end) {
        if (!next_field(&list, &number, &type, &value))
            return 0;
        if (number != 1 || (type != COUNTED && type != FIXED32))
            continue;
        if ((value.end - value.at) % 4 != 0)
            return 0;
        note_stretch(feature, value, type == COUNTED, start);
        feature->count += (value.end - value.at) / 4;
    }
    return 1;
}

static int add_integers(message list, penstock_feature *feature, const uint8_t *start)
{
    uint64_t number, whole;
    int type;
    message value;
    while (list.at < list.end) {
        if (!next_field(&list, &number, &type, &value))
            return 0;
        if (number != 1 || (type != COUNTED && type != VARINT))
            continue;
        note_stretch(feature, value, type == COUNTED, start);
        for (; value.at < value.end; feature->count++) {
            if (!read_varint(&value, &whole))
                return 0;
            if (feature->count == 0)
                memcpy(&feature->first, &whole, sizeof whole);
        }
    }
    return 1;
}

/* One of three lists; where there are several, the last kind counts, and lists of one kind are joined. */
static int read_feature(message in, penstock_feature *feature, const uint8_t *start)
{
    uint64_t number;
    int type;
    message list;
    *feature = (penstock_feature){PENSTOCK_EMPTY, 0, 0, 0, 0};
    while (in.at < in.end) {
        if (!next_field(&in, &number, &type, &list))
            return 0;
        if (number < PENSTOCK_BYTES || number > PENSTOCK_INTEGERS || type != COUNTED)
            continue;
        if (feature->kind != (int64_t)number)
            *feature = (penstock_feature){(int64_t)number, 0, 0, 0, 0};
        if (!(number == PENSTOCK_BYTES    ? add_bytes(list, feature, start)
              : number == PENSTOCK_FLOATS ? add_floats(list, feature, start)
                                          : add_integers(list, feature, start)))
            return 0;
    }
    return 1;
}

static const penstock_name *find_name(message key, const penstock_name *names, size_t count)
{
    size_t size = (size_t)(key.end - key.at);
    for (size_t i = 0; i < count; i++)
        if (names[i].size == size && (size == 0 || memcmp(names[i].text, key.at, size) == 0))
            return &names[i];
    return NULL;
}

static int read_entry(message in, const penstock_name *names, size_t count, penstock_feature *features,
                      const uint8_t *start)
{
    uint64_t number;
    int type;
    message part, key = {in.at, in.at}, value = {in.at, in.at};
    while (in.at < in.end) {
        if (!next_field(&in, &number, &type, &part))
            return 0;
        if (type == COUNTED && number == 1)
            key = part;
        else if (type == COUNTED && number == 2)
            value = part;
    }
    const penstock_name *name = find_name(key, names, count);
    return name == NULL || read_feature(value, &features[name - names], start);
}

int penstock_find_features(const uint8_t *data, penstock_span place, const penstock_name *names, size_t count,
                           penstock_feature *features)
{
    uint64_t number;
    int type;
    message part, entry, example = {data + place.offset, data + place.offset + place.length};
    memset(features, 0, count * sizeof *features);
    while (example.at < example.end) {
        if (!next_field(&example, &number, &type, &part))
            return 0;
        if (number != 1 || type != COUNTED)
            continue;
        while (part.at < part.end) {
            if (!next_field(&part, &number, &type, &entry))
                return 0;
            if (number == 1 && type == COUNTED && !read_entry(entry, names, count, features, data))
                return 0;
        }
    }
    return 1;
}

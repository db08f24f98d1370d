/* TFRecords as Python sees them; what touches much memory gives the GIL away. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "records_module.h"
#include "crc32c.h"
#include "records.h"

/* Below this, getting the GIL back may cost more than a copy with its checksum: 64 KB take about 10 µs. */
#define LARGE_BYTES (64 * 1024)

PyObject *penstock_masked_crc32c_call(PyObject *module, PyObject *data)
{
    Py_buffer view;
    uint32_t crc;
    (void)module;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0)
        return NULL;
    if (view.len < LARGE_BYTES) {
        crc = penstock_masked_crc32c(view.buf, (size_t)view.len);
    } else {
        Py_BEGIN_ALLOW_THREADS
        crc = penstock_masked_crc32c(view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(crc);
}

static void put_little(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

/* A payload in pieces that are held while it is copied. */
typedef struct {
    Py_buffer *held;
    Py_ssize_t count;
    size_t size;
} payload_pieces;

static void release_pieces(payload_pieces *self)
{
    for (Py_ssize_t i = 0; i < self->count; i++)
        PyBuffer_Release(&self->held[i]);
    PyMem_Free(self->held);
}

static int hold_piece(payload_pieces *self, PyObject *piece)
{
    Py_buffer *held = &self->held[self->count];
    if (PyObject_GetBuffer(piece, held, PyBUF_SIMPLE) != 0)
        return 0;
    self->count++;
    if ((size_t)held->len > (size_t)PY_SSIZE_T_MAX - PENSTOCK_RECORD_HEAD - PENSTOCK_RECORD_TAIL - self->size) {
        PyErr_NoMemory();
        return 0;
    }
    self->size += (size_t)held->len;
    return 1;
}

static int hold_pieces(payload_pieces *self, PyObject *payload)
{
    int is_tuple = PyTuple_Check(payload);
    Py_ssize_t count = is_tuple ? PyTuple_Size(payload) : 1;
    self->held = PyMem_Calloc((size_t)count + 1, sizeof(Py_buffer));
    if (self->held == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!hold_piece(self, is_tuple ? PyTuple_GetItem(payload, i) : payload))
            return 0;
    return 1;
}

static void write_record(uint8_t *out, const payload_pieces *payload)
{
    uint8_t *start = out + PENSTOCK_RECORD_HEAD;
    uint8_t *next = start;
    put_little(out, payload->size, 8);
    put_little(out + 8, penstock_masked_crc32c(out, 8), 4);
    for (Py_ssize_t i = 0; i < payload->count; i++) {
        size_t size = (size_t)payload->held[i].len;
        if (size)
            memcpy(next, payload->held[i].buf, size);
        next += size;
    }
    put_little(next, penstock_masked_crc32c(start, payload->size), 4);
}

PyObject *penstock_frame_call(PyObject *module, PyObject *payload)
{
    payload_pieces pieces = {0};
    PyObject *record = NULL;
    (void)module;
    if (hold_pieces(&pieces, payload))
        record = PyBytes_FromStringAndSize(NULL,
                                           (Py_ssize_t)pieces.size + PENSTOCK_RECORD_HEAD + PENSTOCK_RECORD_TAIL);
    if (record != NULL) {
        uint8_t *out = (uint8_t *)PyBytes_AsString(record);
        if (pieces.size < LARGE_BYTES) {
            write_record(out, &pieces);
        } else {
            Py_BEGIN_ALLOW_THREADS
            write_record(out, &pieces);
            Py_END_ALLOW_THREADS
        }
    }
    release_pieces(&pieces);
    return record;
}

PyObject *penstock_scan_records_call(PyObject *module, PyObject *arguments)
{
    Py_buffer data, places;
    Py_ssize_t start;
    size_t found;
    int why;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*nw*", &data, &start, &places))
        return NULL;
    size_t position = start < 0 ? 0 : (size_t)start;
    Py_BEGIN_ALLOW_THREADS
    why = penstock_scan_records(data.buf, (size_t)data.len, &position, places.buf,
                                (size_t)places.len / sizeof(penstock_span), &found);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&places);
    PyBuffer_Release(&data);
    return Py_BuildValue("(nni)", (Py_ssize_t)found, (Py_ssize_t)position, why);
}

/* Whether every payload is inside of the data. */
static int are_inside(const Py_buffer *data, const Py_buffer *places)
{
    const penstock_span *place = places->buf;
    for (size_t i = 0; i < (size_t)places->len / sizeof *place; i++) {
        int64_t offset = place[i].offset, length = place[i].length;
        if (offset < 0 || length < 0 || offset > data->len || length > data->len - offset) {
            PyErr_Format(PyExc_ValueError, "place %zu is outside of the %zd bytes", i, data->len);
            return 0;
        }
    }
    return 1;
}

static int has_room(const Py_buffer *view, size_t count, size_t item_bytes)
{
    if ((size_t)view->len / item_bytes >= count)
        return 1;
    PyErr_Format(PyExc_ValueError, "room for %zu items of %zu bytes is needed, and there are %zd bytes", count,
                 item_bytes, view->len);
    return 0;
}

/* Mapped files, held while the GIL is away. */
typedef struct {
    Py_ssize_t count, held;
    Py_buffer *views;
} buffers;

static int hold_buffers(buffers *self, PyObject *objects)
{
    self->count = PyTuple_Size(objects);
    self->views = PyMem_Calloc((size_t)self->count + 1, sizeof *self->views);
    if (self->views == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (; self->held < self->count; self->held++)
        if (PyObject_GetBuffer(PyTuple_GetItem(objects, self->held), &self->views[self->held], PyBUF_SIMPLE) != 0)
            return 0;
    return 1;
}

static void release_buffers(buffers *self)
{
    for (Py_ssize_t i = 0; i < self->held; i++)
        PyBuffer_Release(&self->views[i]);
    PyMem_Free(self->views);
}

static int are_in_their_buffers(const buffers *self, const penstock_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number = records[i].buffer, offset = records[i].offset, length = records[i].length;
        int64_t size = number >= 0 && number < self->count ? self->views[number].len - PENSTOCK_RECORD_TAIL : -1;
        if (offset < 0 || length < 0 || length > size || offset > size - length) {
            PyErr_Format(PyExc_ValueError, "place %zu is outside of its buffer", i);
            return 0;
        }
    }
    return 1;
}

static void check_all(const buffers *self, const penstock_record *records, size_t count, uint8_t *is_whole)
{
    for (size_t i = 0; i < count; i++)
        is_whole[i] = (uint8_t)penstock_record_is_whole(self->views[records[i].buffer].buf,
                                                        (penstock_span){records[i].offset, records[i].length});
}

PyObject *penstock_check_records_call(PyObject *module, PyObject *arguments)
{
    PyObject *objects;
    Py_buffer places, is_whole;
    buffers self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!y*w*", &PyTuple_Type, &objects, &places, &is_whole))
        return NULL;
    size_t count = (size_t)places.len / sizeof(penstock_record);
    int done = has_room(&is_whole, count, 1) && hold_buffers(&self, objects) &&
               are_in_their_buffers(&self, places.buf, count);
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        check_all(&self, places.buf, count, is_whole.buf);
        Py_END_ALLOW_THREADS
    }
    release_buffers(&self);
    PyBuffer_Release(&is_whole);
    PyBuffer_Release(&places);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* The texts stay valid as long as their tuple. */
static penstock_name *names_of(PyObject *texts, Py_ssize_t count)
{
    penstock_name *names = PyMem_Calloc((size_t)count + 1, sizeof *names);
    if (names == NULL)
        return (penstock_name *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(texts, i), &text, &size) != 0) {
            PyMem_Free(names);
            return NULL;
        }
        names[i] = (penstock_name){(const uint8_t *)text, (size_t)size};
    }
    return names;
}

typedef struct {
    Py_buffer data, places, features, is_example;
} examples;

static void find_all(examples *self, const penstock_name *names, size_t name_count)
{
    const penstock_span *place = self->places.buf;
    penstock_feature *feature = self->features.buf;
    uint8_t *answer = self->is_example.buf;
    for (size_t i = 0; i < (size_t)self->places.len / sizeof *place; i++)
        answer[i] = (uint8_t)penstock_find_features(self->data.buf, place[i], names, name_count,
                                                    feature + i * name_count);
}

static int find_in(examples *self, PyObject *texts)
{
    size_t count = (size_t)self->places.len / sizeof(penstock_span);
    size_t name_count = (size_t)PyTuple_Size(texts);
    if (!are_inside(&self->data, &self->places) || !has_room(&self->is_example, count, 1) ||
        !has_room(&self->features, count, name_count * sizeof(penstock_feature) + !name_count))
        return 0;
    penstock_name *names = names_of(texts, (Py_ssize_t)name_count);
    if (names == NULL)
        return 0;
    if (count == 1) { /* a look at one record is shorter than giving the GIL away */
        find_all(self, names, name_count);
    } else {
        Py_BEGIN_ALLOW_THREADS
        find_all(self, names, name_count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(names);
    return 1;
}

PyObject *penstock_find_features_call(PyObject *module, PyObject *arguments)
{
    examples self;
    PyObject *texts;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*O!w*w*", &self.data, &self.places, &PyTuple_Type, &texts, &self.features,
                          &self.is_example))
        return NULL;
    int done = find_in(&self, texts);
    PyBuffer_Release(&self.is_example);
    PyBuffer_Release(&self.features);
    PyBuffer_Release(&self.places);
    PyBuffer_Release(&self.data);
    return done ? Py_NewRef(Py_None) : NULL;
}

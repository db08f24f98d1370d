/* TFRecords as Python sees them; what touches much memory gives the GIL away. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "records_module.h"
#include "crc32c.h"
#include "example_records.h"
#include "records.h"

/* Below this, getting the GIL back may cost more than the checksum: 64 KB take about 10 µs. */
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

/* Buffers that are held while the GIL is away. */
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

/* A payload comes in so many pieces: what stands before something large, that, and what stands behind it. */
#define PIECES 3

typedef struct {
    uint8_t head[PENSTOCK_RECORD_HEAD], tail[PENSTOCK_RECORD_TAIL];
} record_ends;

static record_ends ends_of(const Py_buffer *piece)
{
    record_ends ends;
    uint64_t size = 0;
    uint32_t crc = 0;
    for (int i = 0; i < PIECES; i++) {
        size += (uint64_t)piece[i].len;
        crc = penstock_crc32c(crc, piece[i].buf, (size_t)piece[i].len);
    }
    put_little(ends.head, size, 8);
    put_little(ends.head + 8, penstock_masked_crc32c(ends.head, 8), 4);
    put_little(ends.tail, penstock_mask(crc), 4);
    return ends;
}

static PyObject *list_of_ends(const record_ends *ends, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *pair = Py_BuildValue("(y#y#)", ends[i].head, (Py_ssize_t)PENSTOCK_RECORD_HEAD, ends[i].tail,
                                       (Py_ssize_t)PENSTOCK_RECORD_TAIL);
        if (pair == NULL || PyList_SetItem(list, i, pair) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *framed(const buffers *pieces)
{
    Py_ssize_t count = pieces->count / PIECES;
    record_ends *ends = PyMem_Calloc((size_t)count + 1, sizeof *ends);
    if (ends == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++)
        ends[i] = ends_of(pieces->views + i * PIECES);
    Py_END_ALLOW_THREADS
    PyObject *list = list_of_ends(ends, count);
    PyMem_Free(ends);
    return list;
}

PyObject *penstock_frame_call(PyObject *module, PyObject *pieces)
{
    buffers self = {0};
    (void)module;
    if (!PyTuple_Check(pieces) || PyTuple_Size(pieces) % PIECES) {
        PyErr_SetString(PyExc_TypeError, "a tuple with three pieces of each payload is expected");
        return NULL;
    }
    PyObject *ends = hold_buffers(&self, pieces) ? framed(&self) : NULL;
    release_buffers(&self);
    return ends;
}

/* Examples around their images: bytes objects are made first, then filled without the GIL, before anybody has them. */
typedef struct {
    penstock_piece pieces[PENSTOCK_PIECES];
    uint8_t *before, *behind;
    size_t before_size;
} example_record;

static PyObject *empty_bytes(size_t size, uint8_t **memory)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes != NULL)
        *memory = (uint8_t *)PyBytes_AsString(bytes);
    return bytes;
}

/* A pair of bytes objects for one record. */
static PyObject *pair_for(example_record *record, const Py_buffer *views, penstock_piece name)
{
    for (int i = 0; i < PENSTOCK_PIECES; i++)
        record->pieces[i] = (penstock_piece){views[i].buf, (size_t)views[i].len};
    record->before_size = penstock_size_before(record->pieces, name);
    PyObject *before = empty_bytes(record->before_size, &record->before);
    PyObject *behind = empty_bytes(penstock_size_behind(record->pieces), &record->behind);
    if (before == NULL || behind == NULL) {
        Py_XDECREF(before);
        Py_XDECREF(behind);
        return NULL;
    }
    return Py_BuildValue("(NN)", before, behind);
}

static PyObject *pairs_for(example_record *records, Py_ssize_t count, const Py_buffer *views, penstock_piece name)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *pair = pair_for(&records[i], views + i * PENSTOCK_PIECES, name);
        if (pair == NULL || PyList_SetItem(list, i, pair) != 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *framed_examples(const buffers *pieces, penstock_piece name)
{
    Py_ssize_t count = pieces->count / PENSTOCK_PIECES;
    example_record *records = PyMem_Calloc((size_t)count + 1, sizeof *records);
    if (records == NULL)
        return PyErr_NoMemory();
    PyObject *list = pairs_for(records, count, pieces->views, name);
    if (list != NULL) {
        Py_BEGIN_ALLOW_THREADS
        for (example_record *record = records; record < records + count; record++) {
            penstock_put_before(record->pieces, name, record->before);
            penstock_put_behind(record->pieces, record->before, record->before_size, record->behind);
        }
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(records);
    return list;
}

PyObject *penstock_frame_examples_call(PyObject *module, PyObject *arguments)
{
    PyObject *pieces;
    const char *name;
    Py_ssize_t name_size;
    buffers self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!y#", &PyTuple_Type, &pieces, &name, &name_size))
        return NULL;
    if (PyTuple_Size(pieces) % PENSTOCK_PIECES) {
        PyErr_SetString(PyExc_TypeError, "a tuple with three pieces of each Example is expected");
        return NULL;
    }
    penstock_piece feature = {(const uint8_t *)name, (size_t)name_size};
    PyObject *list = hold_buffers(&self, pieces) ? framed_examples(&self, feature) : NULL;
    release_buffers(&self);
    return list;
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

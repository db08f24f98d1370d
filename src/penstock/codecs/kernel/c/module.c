/* The face to Python: buffers in, a range decoded without the GIL, and a list of what did not work. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>
#include <jpeglib.h>

#include "crc32c.h"
#include "kernel.h"
#include "packing_module.h"
#include "rasters_module.h"
#include "records_module.h"
#include "video_module.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* Everything that one call holds; the buffers keep their objects alive while the GIL is away. */
typedef struct {
    Py_ssize_t count;        /* samples */
    Py_ssize_t source_count; /* encoded images, or buffers with raw pixels */
    Py_buffer *held;         /* of the sources; those that are not needed stay empty */
    penstock_source *sources;
    penstock_source *images; /* encoded images inside the sources; not used where each source is one image */
    penstock_failure *failures;
    Py_buffer places, views, flips, out, table;
} call;

static void release_buffer(Py_buffer *held)
{
    if (held->obj != NULL)
        PyBuffer_Release(held);
}

static void release(call *self)
{
    for (Py_ssize_t i = 0; self->held != NULL && i < self->source_count; i++)
        release_buffer(&self->held[i]);
    PyMem_Free(self->held);
    PyMem_Free(self->sources);
    PyMem_Free(self->images);
    PyMem_Free(self->failures);
    release_buffer(&self->places);
    release_buffer(&self->views);
    release_buffer(&self->flips);
    release_buffer(&self->out);
    release_buffer(&self->table);
}

/* Failures are left as they come: most calls have none, and then their memory is never touched. */
static int make_room(call *self)
{
    self->held = PyMem_Calloc((size_t)self->source_count + 1, sizeof(Py_buffer));
    self->sources = PyMem_Calloc((size_t)self->source_count + 1, sizeof(penstock_source));
    self->failures = PyMem_Malloc(((size_t)self->count + 1) * sizeof(penstock_failure));
    if (self->held != NULL && self->sources != NULL && self->failures != NULL)
        return 1;
    PyErr_NoMemory();
    return 0;
}

static int hold_source(call *self, PyObject *sources, Py_ssize_t number)
{
    Py_buffer *held = &self->held[number];
    if (held->obj != NULL)
        return 1;
    if (PyObject_GetBuffer(PyTuple_GetItem(sources, number), held, PyBUF_SIMPLE) != 0)
        return 0;
    self->sources[number] = (penstock_source){held->buf, (size_t)held->len};
    return 1;
}

static int hold_all_sources(call *self, PyObject *sources)
{
    for (Py_ssize_t i = 0; i < self->source_count; i++)
        if (!hold_source(self, sources, i))
            return 0;
    return 1;
}

/* A pack has many shards, and a range looks at few of them. */
static int hold_named_sources(call *self, PyObject *sources)
{
    const penstock_place *places = self->places.buf;
    for (Py_ssize_t i = 0; i < self->count; i++)
        if (places[i].buffer >= 0 && places[i].buffer < self->source_count &&
            !hold_source(self, sources, (Py_ssize_t)places[i].buffer))
            return 0;
    return 1;
}

/* The images of a range that are stretches of larger buffers, each inside its own. */
static int find_images(call *self, PyObject *buffers)
{
    const penstock_stretch *places = self->places.buf;
    self->images = PyMem_Calloc((size_t)self->count + 1, sizeof(penstock_source));
    if (self->images == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        penstock_stretch place = places[i];
        int is_named = place.buffer >= 0 && place.buffer < self->source_count;
        if (is_named && !hold_source(self, buffers, (Py_ssize_t)place.buffer))
            return 0;
        int64_t size = is_named ? (int64_t)self->sources[place.buffer].size : -1;
        if (place.offset < 0 || place.length < 0 || place.length > size || place.offset > size - place.length) {
            PyErr_Format(PyExc_ValueError, "the place of image %zd is not in its buffer", i);
            return 0;
        }
        self->images[i] = (penstock_source){self->sources[place.buffer].bytes + place.offset,
                                            (size_t)place.length};
    }
    return 1;
}

/* A buffer of exactly so many items; count × item_bytes is known not to overflow. */
static int hold_array(PyObject *object, Py_buffer *held, int flags, size_t count, size_t item_bytes, const char *name)
{
    if (PyObject_GetBuffer(object, held, PyBUF_C_CONTIGUOUS | flags) != 0)
        return 0;
    if ((size_t)held->len == count * item_bytes)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must have %zu bytes and has %zd", name, count * item_bytes, held->len);
    return 0;
}

static int check_target(const penstock_target *target, Py_ssize_t count)
{
    if (target->width < 1 || target->height < 1 || target->width > PENSTOCK_MOST_SIDE ||
        target->height > PENSTOCK_MOST_SIDE) {
        PyErr_Format(PyExc_ValueError, "the size must be from 1x1 to %dx%d", PENSTOCK_MOST_SIDE, PENSTOCK_MOST_SIDE);
        return 0;
    }
    if (target->fill < 0 || target->fill >= PENSTOCK_LEVELS) {
        PyErr_SetString(PyExc_ValueError, "fill must be a level from 0 to 255");
        return 0;
    }
    size_t most_bytes = sizeof(penstock_failure) + (size_t)target->width * (size_t)target->height * 12;
    if ((size_t)count >= PY_SSIZE_T_MAX / most_bytes) {
        PyErr_SetString(PyExc_ValueError, "the range is too long");
        return 0;
    }
    return 1;
}

static int hold_table(call *self, PyObject *table, penstock_target *target)
{
    if (table == Py_None)
        return 1;
    if (!hold_array(table, &self->table, 0, PENSTOCK_CHANNELS * PENSTOCK_LEVELS, sizeof(float), "table"))
        return 0;
    target->table = self->table.buf;
    return 1;
}

/* What every range has: views, flips, out and table, in this order. */
static int hold_arrays(call *self, PyObject *const arrays[4], penstock_target *target)
{
    size_t count = (size_t)self->count;
    return check_target(target, self->count) && make_room(self) && hold_table(self, arrays[3], target) &&
           hold_array(arrays[0], &self->views, 0, count, sizeof(penstock_view), "views") &&
           hold_array(arrays[1], &self->flips, 0, count, 1, "flips") &&
           hold_array(arrays[2], &self->out, PyBUF_WRITABLE, count, penstock_sample_bytes(target), "out");
}

static PyObject *failures(const call *self, size_t failed)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < failed; i++) {
        const penstock_failure *failure = &self->failures[i];
        PyObject *reason = PyUnicode_DecodeUTF8(failure->reason, (Py_ssize_t)strlen(failure->reason), "replace");
        PyObject *entry = reason == NULL ? NULL
                                         : Py_BuildValue("(niN)", (Py_ssize_t)failure->position,
                                                         failure->status == PENSTOCK_OTHER, reason);
        if (entry == NULL || PyList_Append(list, entry) != 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyDoc_STRVAR(decode_range_text,
             "decode_range(sources, views, flips, out, table, width, height, fill, reduce, fast)\n"
             "Decode a tuple of JPEGs into out; returns (position, is_other_kind, reason) of those that failed.");

static PyObject *decode_range(PyObject *module, PyObject *arguments)
{
    PyObject *sources, *arrays[4];
    penstock_target target = {0};
    call self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!OOOOiiipp", &PyTuple_Type, &sources, &arrays[0], &arrays[1], &arrays[2],
                          &arrays[3], &target.width, &target.height, &target.fill, &target.reduce, &target.fast))
        return NULL;
    self.count = self.source_count = PyTuple_Size(sources);
    PyObject *answer = NULL;
    if (hold_arrays(&self, arrays, &target) && hold_all_sources(&self, sources)) {
        size_t failed;
        Py_BEGIN_ALLOW_THREADS
        failed = penstock_decode_range(self.sources, self.views.buf, self.flips.buf, (size_t)self.count, &target,
                                       self.out.buf, self.failures);
        Py_END_ALLOW_THREADS
        answer = failures(&self, failed);
    }
    release(&self);
    return answer;
}

static int count_samples(call *self, PyObject *places, PyObject *flips, size_t place_bytes);

PyDoc_STRVAR(decode_places_text,
             "decode_places(buffers, places, views, flips, out, table, width, height, fill, reduce, fast)\n"
             "As decode_range, for JPEGs that are stretches of larger buffers: buffer, offset and length of each.");

static PyObject *decode_places(PyObject *module, PyObject *arguments)
{
    PyObject *buffers, *places, *arrays[4];
    penstock_target target = {0};
    call self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!OOOOOiiipp", &PyTuple_Type, &buffers, &places, &arrays[0], &arrays[1],
                          &arrays[2], &arrays[3], &target.width, &target.height, &target.fill, &target.reduce,
                          &target.fast))
        return NULL;
    self.source_count = PyTuple_Size(buffers);
    PyObject *answer = NULL;
    if (count_samples(&self, places, arrays[1], sizeof(penstock_stretch)) && hold_arrays(&self, arrays, &target) &&
        find_images(&self, buffers)) {
        size_t failed;
        Py_BEGIN_ALLOW_THREADS
        failed = penstock_decode_range(self.images, self.views.buf, self.flips.buf, (size_t)self.count, &target,
                                       self.out.buf, self.failures);
        Py_END_ALLOW_THREADS
        answer = failures(&self, failed);
    }
    release(&self);
    return answer;
}

PyDoc_STRVAR(pixels_range_text,
             "pixels_range(buffers, places, views, flips, out, table, width, height, fill)\n"
             "Make samples from raw pixels; returns (position, 0, reason) of those that failed.");

/* How many samples there are follows from the flips: one byte each. */
static int count_samples(call *self, PyObject *places, PyObject *flips, size_t place_bytes)
{
    self->count = PyObject_Size(flips);
    if (self->count < 0)
        return 0;
    if ((size_t)self->count > PY_SSIZE_T_MAX / place_bytes) {
        PyErr_SetString(PyExc_ValueError, "the range is too long");
        return 0;
    }
    return hold_array(places, &self->places, 0, (size_t)self->count, place_bytes, "places");
}

static PyObject *pixels_range(PyObject *module, PyObject *arguments)
{
    PyObject *buffers, *places, *arrays[4];
    penstock_target target = {0};
    call self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!OOOOOiii", &PyTuple_Type, &buffers, &places, &arrays[0], &arrays[1],
                          &arrays[2], &arrays[3], &target.width, &target.height, &target.fill))
        return NULL;
    self.source_count = PyTuple_Size(buffers);
    PyObject *answer = NULL;
    if (count_samples(&self, places, arrays[1], sizeof(penstock_place)) && hold_arrays(&self, arrays, &target) &&
        hold_named_sources(&self, buffers)) {
        size_t failed;
        Py_BEGIN_ALLOW_THREADS
        failed = penstock_pixels_range(self.sources, (size_t)self.source_count, self.places.buf, self.views.buf,
                                       self.flips.buf, (size_t)self.count, &target, self.out.buf, self.failures);
        Py_END_ALLOW_THREADS
        answer = failures(&self, failed);
    }
    release(&self);
    return answer;
}

static PyMethodDef methods[] = {
    {"decode_range", decode_range, METH_VARARGS, decode_range_text},
    {"decode_places", decode_places, METH_VARARGS, decode_places_text},
    {"pixels_range", pixels_range, METH_VARARGS, pixels_range_text},
    {"look_at_files", penstock_look_at_files_call, METH_VARARGS, PENSTOCK_LOOK_AT_FILES_TEXT},
    {"read_files", penstock_read_files_call, METH_VARARGS, PENSTOCK_READ_FILES_TEXT},
    {"measure_halved", penstock_measure_halved_call, METH_VARARGS, PENSTOCK_MEASURE_HALVED_TEXT},
    {"jpeg_headers", penstock_jpeg_headers_call, METH_VARARGS, PENSTOCK_JPEG_HEADERS_TEXT},
    {"masked_crc32c", penstock_masked_crc32c_call, METH_O, PENSTOCK_CRC32C_TEXT},
    {"frame", penstock_frame_call, METH_O, PENSTOCK_FRAME_TEXT},
    {"frame_examples", penstock_frame_examples_call, METH_VARARGS, PENSTOCK_FRAME_EXAMPLES_TEXT},
    {"scan_records", penstock_scan_records_call, METH_VARARGS, PENSTOCK_SCAN_RECORDS_TEXT},
    {"check_records", penstock_check_records_call, METH_VARARGS, PENSTOCK_CHECK_RECORDS_TEXT},
    {"find_features", penstock_find_features_call, METH_VARARGS, PENSTOCK_FIND_FEATURES_TEXT},
    {"planes_to_rgb", penstock_planes_to_rgb_call, METH_VARARGS, PENSTOCK_PLANES_TO_RGB_TEXT},
    {"read_tiles", penstock_read_tiles_call, METH_VARARGS, PENSTOCK_READ_TILES_TEXT},
    {NULL, NULL, 0, NULL},
};

static int on_import(PyObject *module)
{
    penstock_crc32c_prepare();
    return PyModule_AddStringConstant(module, "LIBRARY", "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION));
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, on_import},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "penstock.codecs.kernel._native",
    .m_doc = "The JPEG kernel.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}

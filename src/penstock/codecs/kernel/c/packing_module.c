/* What packing asks of the kernel, as Python sees it: each call gives the GIL away once for many files. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "packing_module.h"
#include "files.h"
#include "jpeg_headers.h"
#include "measure.h"

/* A writable buffer of exactly so many items. */
static int hold_items(PyObject *object, Py_buffer *view, int flags, Py_ssize_t count, size_t item_bytes)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags) != 0)
        return 0;
    if (view->len / (Py_ssize_t)item_bytes == count && view->len % (Py_ssize_t)item_bytes == 0)
        return 1;
    PyErr_Format(PyExc_ValueError, "%zd items of %zu bytes are needed, and there are %zd bytes", count, item_bytes,
                 view->len);
    PyBuffer_Release(view);
    return 0;
}

/* The texts stay valid as long as their tuple. */
static const char **texts_of(PyObject *paths, Py_ssize_t count)
{
    const char **texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL)
        return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(paths, i), &text, NULL) != 0) {
            PyMem_Free(texts);
            return NULL;
        }
        texts[i] = text;
    }
    return texts;
}

PyObject *penstock_look_at_files_call(PyObject *module, PyObject *arguments)
{
    PyObject *paths, *states;
    Py_buffer files;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &paths, &states))
        return NULL;
    Py_ssize_t count = PyTuple_Size(paths);
    const char **texts = texts_of(paths, count);
    if (texts == NULL)
        return NULL;
    int held = hold_items(states, &files, PyBUF_WRITABLE, count, sizeof(penstock_file));
    if (held) {
        Py_BEGIN_ALLOW_THREADS
        penstock_look_at_files(texts, (size_t)count, files.buf);
        Py_END_ALLOW_THREADS
        PyBuffer_Release(&files);
    }
    PyMem_Free(texts);
    return held ? Py_NewRef(Py_None) : NULL;
}

/* Whether all sizes that are above zero fit into so many bytes. */
static int fits(const penstock_file *files, Py_ssize_t count, Py_ssize_t bytes)
{
    int64_t left = bytes;
    for (Py_ssize_t i = 0; i < count && left >= 0; i++) {
        if (files[i].size > left)
            return 0;
        if (files[i].size > 0)
            left -= files[i].size;
    }
    return 1;
}

static int read_into(const char **texts, Py_ssize_t count, Py_buffer *files, Py_buffer *out, Py_buffer *is_read)
{
    if (!fits(files->buf, count, out->len)) {
        PyErr_SetString(PyExc_ValueError, "the files are larger than the memory for them");
        return 0;
    }
    Py_BEGIN_ALLOW_THREADS
    penstock_read_files(texts, (size_t)count, files->buf, out->buf, is_read->buf);
    Py_END_ALLOW_THREADS
    return 1;
}

PyObject *penstock_read_files_call(PyObject *module, PyObject *arguments)
{
    PyObject *paths, *objects[3];
    Py_buffer files, out, is_read;
    int done = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!OOO", &PyTuple_Type, &paths, &objects[0], &objects[1], &objects[2]))
        return NULL;
    Py_ssize_t count = PyTuple_Size(paths);
    const char **texts = texts_of(paths, count);
    if (texts == NULL)
        return NULL;
    if (hold_items(objects[0], &files, 0, count, sizeof(penstock_file))) {
        if (hold_items(objects[2], &is_read, PyBUF_WRITABLE, count, 1)) {
            if (PyObject_GetBuffer(objects[1], &out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0) {
                done = read_into(texts, count, &files, &out, &is_read);
                PyBuffer_Release(&out);
            }
            PyBuffer_Release(&is_read);
        }
        PyBuffer_Release(&files);
    }
    PyMem_Free(texts);
    return done ? Py_NewRef(Py_None) : NULL;
}

typedef struct {
    Py_ssize_t count, held;
    Py_buffer *views;
    penstock_source *sources;
} images;

static int hold_images(images *self, PyObject *sources)
{
    self->count = PyTuple_Size(sources);
    self->views = PyMem_Calloc((size_t)self->count + 1, sizeof *self->views);
    self->sources = PyMem_Calloc((size_t)self->count + 1, sizeof *self->sources);
    if (self->views == NULL || self->sources == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (; self->held < self->count; self->held++) {
        Py_buffer *view = &self->views[self->held];
        if (PyObject_GetBuffer(PyTuple_GetItem(sources, self->held), view, PyBUF_SIMPLE) != 0)
            return 0;
        self->sources[self->held] = (penstock_source){view->buf, (size_t)view->len};
    }
    return 1;
}

static void release_images(images *self)
{
    for (Py_ssize_t i = 0; i < self->held; i++)
        PyBuffer_Release(&self->views[i]);
    PyMem_Free(self->views);
    PyMem_Free(self->sources);
}

PyObject *penstock_measure_halved_call(PyObject *module, PyObject *arguments)
{
    PyObject *sources, *object;
    Py_buffer sums;
    images self = {0};
    int least_side, done = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!iO", &PyTuple_Type, &sources, &least_side, &object))
        return NULL;
    if (hold_images(&self, sources) && hold_items(object, &sums, PyBUF_WRITABLE, self.count, sizeof(penstock_sums))) {
        Py_BEGIN_ALLOW_THREADS
        penstock_measure_halved(self.sources, (size_t)self.count, least_side > 0 ? (unsigned)least_side : 0, sums.buf);
        Py_END_ALLOW_THREADS
        PyBuffer_Release(&sums);
        done = 1;
    }
    release_images(&self);
    return done ? Py_NewRef(Py_None) : NULL;
}

static void read_headers(const images *self, penstock_header *headers)
{
    for (Py_ssize_t i = 0; i < self->count; i++)
        if (!penstock_plain_jpeg(self->sources[i].bytes, self->sources[i].size, &headers[i]))
            headers[i] = (penstock_header){0};
}

PyObject *penstock_jpeg_headers_call(PyObject *module, PyObject *arguments)
{
    PyObject *sources, *object;
    Py_buffer headers;
    images self = {0};
    int done = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &sources, &object))
        return NULL;
    if (hold_images(&self, sources) &&
        hold_items(object, &headers, PyBUF_WRITABLE, self.count, sizeof(penstock_header))) {
        Py_BEGIN_ALLOW_THREADS
        read_headers(&self, headers.buf);
        Py_END_ALLOW_THREADS
        PyBuffer_Release(&headers);
        done = 1;
    }
    release_images(&self);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* The face to Python: buffers in, a range decoded without the GIL, and a list of what did not work. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>
#include <jpeglib.h>

#include "kernel.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* Everything that one call holds; the views keep their objects alive while the GIL is away. */
typedef struct {
    Py_ssize_t count, held;
    Py_buffer *views;
    penstock_source *sources;
    penstock_result *results;
    Py_buffer crops, flips, out, table;
} call;

static void release_buffer(Py_buffer *view)
{
    if (view->obj != NULL)
        PyBuffer_Release(view);
}

static void release(call *self)
{
    for (Py_ssize_t i = 0; i < self->held; i++)
        PyBuffer_Release(&self->views[i]);
    PyMem_Free(self->views);
    PyMem_Free(self->sources);
    PyMem_Free(self->results);
    release_buffer(&self->crops);
    release_buffer(&self->flips);
    release_buffer(&self->out);
    release_buffer(&self->table);
}

static int hold_sources(call *self, PyObject *sources)
{
    size_t count = (size_t)self->count;
    self->views = PyMem_Calloc(count + 1, sizeof(Py_buffer));
    self->sources = PyMem_Calloc(count + 1, sizeof(penstock_source));
    self->results = PyMem_Calloc(count + 1, sizeof(penstock_result));
    if (self->views == NULL || self->sources == NULL || self->results == NULL) {
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

/* A buffer of exactly so many items; count × item_bytes is known not to overflow. */
static int hold_array(PyObject *object, Py_buffer *view, int flags, size_t count, size_t item_bytes, const char *name)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags) != 0)
        return 0;
    if ((size_t)view->len == count * item_bytes)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must have %zu bytes and has %zd", name, count * item_bytes, view->len);
    return 0;
}

static int check_target(const penstock_target *target, Py_ssize_t count)
{
    if (target->width < 1 || target->height < 1 || target->width > PENSTOCK_MOST_SIDE ||
        target->height > PENSTOCK_MOST_SIDE) {
        PyErr_Format(PyExc_ValueError, "the size must be from 1x1 to %dx%d", PENSTOCK_MOST_SIDE, PENSTOCK_MOST_SIDE);
        return 0;
    }
    if ((size_t)count > PY_SSIZE_T_MAX / ((size_t)target->width * (size_t)target->height * 12)) {
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

static PyObject *failures(const call *self)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list != NULL && i < self->count; i++) {
        const penstock_result *result = &self->results[i];
        if (result->status == PENSTOCK_DONE)
            continue;
        PyObject *reason = PyUnicode_DecodeUTF8(result->reason, (Py_ssize_t)strlen(result->reason), "replace");
        PyObject *entry = reason == NULL ? NULL : Py_BuildValue("(niN)", i, result->status == PENSTOCK_OTHER, reason);
        if (entry == NULL || PyList_Append(list, entry) != 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static int hold_all(call *self, PyObject *sources, PyObject *const arrays[4], penstock_target *target)
{
    size_t count = (size_t)self->count;
    return check_target(target, self->count) && hold_table(self, arrays[3], target) && hold_sources(self, sources) &&
           hold_array(arrays[0], &self->crops, 0, count, sizeof(penstock_crop), "crops") &&
           hold_array(arrays[1], &self->flips, 0, count, 1, "flips") &&
           hold_array(arrays[2], &self->out, PyBUF_WRITABLE, count, penstock_sample_bytes(target), "out");
}

PyDoc_STRVAR(decode_range_text,
             "decode_range(sources, crops, flips, out, table, width, height, reduce)\n"
             "Decode a tuple of JPEGs into out; returns (position, is_other_kind, reason) of those that failed.");

static PyObject *decode_range(PyObject *module, PyObject *arguments)
{
    PyObject *sources, *arrays[4];
    penstock_target target = {0, 0, NULL, 0};
    call self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!OOOOiip", &PyTuple_Type, &sources, &arrays[0], &arrays[1], &arrays[2],
                          &arrays[3], &target.width, &target.height, &target.reduce))
        return NULL;
    self.count = PyTuple_Size(sources);
    PyObject *answer = NULL;
    if (hold_all(&self, sources, arrays, &target)) {
        Py_BEGIN_ALLOW_THREADS
        penstock_decode_range(self.sources, self.crops.buf, self.flips.buf, (size_t)self.count, &target, self.out.buf,
                              self.results);
        Py_END_ALLOW_THREADS
        answer = failures(&self);
    }
    release(&self);
    return answer;
}

static PyMethodDef methods[] = {
    {"decode_range", decode_range, METH_VARARGS, decode_range_text},
    {NULL, NULL, 0, NULL},
};

static int on_import(PyObject *module)
{
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

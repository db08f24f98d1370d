/* The face to Python: a mapped file as an object with a buffer. Whatever views it keeps it mapped. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>

#include "mapping.h"

typedef struct {
    PyObject_HEAD
    penstock_mapping *mapping;
} mapped_file;

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    penstock_mapping *mapping = ((mapped_file *)self)->mapping;
    return PyBuffer_FillInfo(view, self, (void *)penstock_mapped_bytes(mapping),
                             (Py_ssize_t)penstock_mapped_size(mapping), 1, flags);
}

static void deallocate(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((mapped_file *)self)->mapping != NULL)
        penstock_unmap(((mapped_file *)self)->mapping);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_bf_getbuffer, get_buffer},
    {Py_tp_dealloc, deallocate},
    {Py_tp_doc, "A file as mapped memory, read-only."},
    {0, NULL},
};
static PyType_Spec specification = {
    "penstock.storage._mapping.MappedFile", sizeof(mapped_file), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};
static PyObject *mapped_type;

PyDoc_STRVAR(map_file_text, "map_file(path, size)\n"
                            "A file of this size as mapped memory; OSError (EINVAL where it has another size).");

static PyObject *map_file(PyObject *module, PyObject *arguments)
{
    PyObject *path;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O&n", PyUnicode_FSConverter, &path, &size))
        return NULL;
    penstock_mapping *mapping = NULL;
    PyObject *self = NULL;
    const char *text = PyBytes_AsString(path);
    if (text != NULL) {
        Py_BEGIN_ALLOW_THREADS
        mapping = penstock_map(text, size < 0 ? 0 : (size_t)size);
        Py_END_ALLOW_THREADS
        if (mapping == NULL)
            PyErr_SetFromErrnoWithFilename(PyExc_OSError, text);
    }
    Py_DECREF(path);
    if (mapping == NULL)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)mapped_type, Py_tp_alloc);
    self = allocate((PyTypeObject *)mapped_type, 0);
    if (self == NULL)
        penstock_unmap(mapping);
    else
        ((mapped_file *)self)->mapping = mapping;
    return self;
}

PyDoc_STRVAR(lost_count_text, "lost_count()\nHow many files that are mapped lost some of their bytes.");

static PyObject *lost_count(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    return PyLong_FromLong(penstock_lost_count());
}

static void append(const char *path, void *to)
{
    PyObject *text = PyUnicode_DecodeFSDefault(path);
    if (text == NULL || PyList_Append(to, text) != 0)
        PyErr_Clear(); /* there is no memory; the count tells that there is something */
    Py_XDECREF(text);
}

PyDoc_STRVAR(lost_files_text, "lost_files()\nThe files that are mapped and lost some of their bytes.");

static PyObject *lost_files(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
    PyObject *list = PyList_New(0);
    if (list != NULL)
        penstock_tell_lost(append, list);
    return list;
}

static PyMethodDef methods[] = {
    {"map_file", map_file, METH_VARARGS, map_file_text},
    {"lost_count", lost_count, METH_NOARGS, lost_count_text},
    {"lost_files", lost_files, METH_NOARGS, lost_files_text},
    {NULL, NULL, 0, NULL},
};

static int make_type(PyObject *module)
{
    (void)module;
    if (mapped_type == NULL)
        mapped_type = PyType_FromSpec(&specification);
    return mapped_type == NULL ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, make_type},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_mapping", "Files as mapped memory that outlives their bytes.", 0, methods, module_slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__mapping(void)
{
    return PyModuleDef_Init(&definition);
}

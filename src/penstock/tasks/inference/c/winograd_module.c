/* The face to Python: float32 arrays in and out, and the work between without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "winograd.h"

#define FLOAT ((Py_ssize_t)sizeof(float))

/* Arrays of one call, held while the GIL is away. */
typedef struct {
    Py_buffer held[3];
    int count;
} arrays;

static Py_buffer *hold(arrays *self, PyObject *object, int dimensions, int flags)
{
    Py_buffer *held = &self->held[self->count];
    if (PyObject_GetBuffer(object, held, PyBUF_STRIDES | PyBUF_FORMAT | flags) != 0)
        return NULL;
    self->count++;
    if (held->ndim != dimensions || held->format == NULL || strcmp(held->format, "f") != 0) {
        PyErr_Format(PyExc_ValueError, "an array of %d dimensions of float32 is needed", dimensions);
        return NULL;
    }
    if (held->strides[dimensions - 1] != FLOAT) {
        PyErr_SetString(PyExc_ValueError, "channels must lie side by side");
        return NULL;
    }
    return held;
}

static PyObject *released(arrays *self, int done)
{
    while (self->count > 0)
        PyBuffer_Release(&self->held[--self->count]);
    return done ? Py_NewRef(Py_None) : NULL;
}

static penstock_map map_of(const Py_buffer *held)
{
    penstock_map map = {held->buf, held->strides[0] / FLOAT, held->strides[1] / FLOAT,
                        held->shape[0], held->shape[1], held->shape[2]};
    return map;
}

/* Whether so many rows of pieces are in the map, and the planes have a place for each of them. */
static int fits(const Py_buffer *map, const Py_buffer *planes, Py_ssize_t first, Py_ssize_t rows)
{
    Py_ssize_t down = (map->shape[0] + PENSTOCK_ANSWERS - 1) / PENSTOCK_ANSWERS;
    Py_ssize_t across = (map->shape[1] + PENSTOCK_ANSWERS - 1) / PENSTOCK_ANSWERS;
    int does = first >= 0 && rows >= 0 && first <= down && rows <= down - first &&
               planes->shape[0] == PENSTOCK_PIECE * PENSTOCK_PIECE && planes->shape[1] == rows * across &&
               planes->shape[2] == map->shape[2] && planes->strides[1] == planes->shape[2] * FLOAT;
    if (!does)
        PyErr_SetString(PyExc_ValueError, "rows of pieces and values do not fit the image");
    return does;
}

static PyObject *values_call(PyObject *module, PyObject *arguments)
{
    PyObject *image_object, *values_object;
    Py_ssize_t first, rows;
    arrays self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OnnO", &image_object, &first, &rows, &values_object))
        return NULL;
    Py_buffer *image = hold(&self, image_object, 3, 0);
    Py_buffer *values = image == NULL ? NULL : hold(&self, values_object, 3, PyBUF_WRITABLE);
    if (values == NULL || !fits(image, values, first, rows))
        return released(&self, 0);
    penstock_map map = map_of(image);
    penstock_planes planes = {values->buf, values->strides[0] / FLOAT};
    Py_BEGIN_ALLOW_THREADS
    penstock_winograd_values(&map, first, rows, planes);
    Py_END_ALLOW_THREADS
    return released(&self, 1);
}

static PyObject *answers_call(PyObject *module, PyObject *arguments)
{
    PyObject *products_object, *bias_object, *out_object;
    Py_ssize_t first, rows;
    arrays self = {0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOnnO", &products_object, &bias_object, &first, &rows, &out_object))
        return NULL;
    Py_buffer *products = hold(&self, products_object, 3, 0);
    Py_buffer *out = products == NULL ? NULL : hold(&self, out_object, 3, PyBUF_WRITABLE);
    Py_buffer *bias = out == NULL || bias_object == Py_None ? NULL : hold(&self, bias_object, 1, 0);
    if (out == NULL || (bias == NULL && bias_object != Py_None) || !fits(out, products, first, rows))
        return released(&self, 0);
    if (bias != NULL && bias->shape[0] != out->shape[2]) {
        PyErr_SetString(PyExc_ValueError, "there must be a bias for each channel");
        return released(&self, 0);
    }
    penstock_map map = map_of(out);
    penstock_planes planes = {products->buf, products->strides[0] / FLOAT};
    Py_BEGIN_ALLOW_THREADS
    penstock_winograd_answers(planes, bias == NULL ? NULL : bias->buf, first, rows, &map);
    Py_END_ALLOW_THREADS
    return released(&self, 1);
}

static PyMethodDef methods[] = {
    {"values", values_call, METH_VARARGS, "36 values of every piece in some rows of them."},
    {"answers", answers_call, METH_VARARGS, "4 × 4 answers of 36 products of every piece in some rows of them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_winograd", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__winograd(void)
{
    return PyModule_Create(&definition);
}

/* What reading videos asks of the kernel, as Python sees it: one frame a call, without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "planes.h"
#include "video_module.h"

/* The planes of a frame and the memory for its pixels, held while the GIL is away. */
typedef struct {
    Py_buffer held[PENSTOCK_PLANES + 1];
    int count;
} buffers;

static int hold(buffers *self, PyObject *object, int flags)
{
    if (PyObject_GetBuffer(object, &self->held[self->count], flags) != 0)
        return 0;
    self->count++;
    return 1;
}

static void release(buffers *self)
{
    while (self->count > 0)
        PyBuffer_Release(&self->held[--self->count]);
}

static int hold_all(buffers *self, PyObject *const planes[PENSTOCK_PLANES], PyObject *out, penstock_picture *picture)
{
    for (int i = 0; i < PENSTOCK_PLANES; i++) {
        if (!hold(self, planes[i], PyBUF_SIMPLE))
            return 0;
        picture->planes[i].bytes = self->held[i].buf;
        picture->planes[i].size = self->held[i].len;
    }
    return hold(self, out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
}

static int check(const penstock_picture *picture, const penstock_matrix *matrix, int width, int height,
                 Py_ssize_t bytes)
{
    const char *problem = penstock_planes_problem(picture, matrix, width, height);
    if (problem == NULL && (Py_ssize_t)width * height * 3 != bytes)
        problem = "out has not the size";
    if (problem != NULL)
        PyErr_SetString(PyExc_ValueError, problem);
    return problem == NULL;
}

static int make(const buffers *self, const penstock_picture *picture, const penstock_matrix *matrix, int width,
                int height)
{
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = penstock_planes_to_rgb(picture, matrix, width, height, self->held[PENSTOCK_PLANES].buf);
    Py_END_ALLOW_THREADS
    if (!done)
        PyErr_NoMemory();
    return done;
}

PyObject *penstock_planes_to_rgb_call(PyObject *module, PyObject *arguments)
{
    PyObject *planes[PENSTOCK_PLANES], *out;
    penstock_picture picture = {0};
    penstock_matrix matrix;
    buffers self = {0};
    long long lines[PENSTOCK_PLANES];
    int width, height;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "(OOO)(LLL)(iiii)(iiii)(iiiiii)(ii)O", &planes[0], &planes[1], &planes[2],
                          &lines[0], &lines[1], &lines[2], &picture.x, &picture.y, &picture.width, &picture.height,
                          &picture.across.bits, &picture.down.bits, &picture.across.quarters,
                          &picture.down.quarters, &matrix.black, &matrix.luma, &matrix.red_of_v,
                          &matrix.green_of_u, &matrix.green_of_v, &matrix.blue_of_u, &width, &height, &out))
        return NULL;
    for (int i = 0; i < PENSTOCK_PLANES; i++)
        picture.planes[i].line = lines[i];
    int done = hold_all(&self, planes, out, &picture) &&
               check(&picture, &matrix, width, height, self.held[PENSTOCK_PLANES].len) &&
               make(&self, &picture, &matrix, width, height);
    release(&self);
    return done ? Py_NewRef(Py_None) : NULL;
}

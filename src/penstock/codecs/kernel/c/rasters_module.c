/* What reading rasters asks of the kernel, as Python sees it: one row of tiles a call, without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rasters_module.h"
#include "tiles.h"

/* Rows may lie apart; within a row, bytes follow one another. */
static int hold_rows(PyObject *object, Py_buffer *view, penstock_rows *rows)
{
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | PyBUF_WRITABLE) != 0)
        return 0;
    if (view->ndim == 3 && view->itemsize == 1 && view->strides[2] == 1 && view->strides[1] == view->shape[2]) {
        *rows = (penstock_rows){view->buf, view->shape[0], view->shape[1] * view->shape[2], view->strides[0]};
        return 1;
    }
    PyErr_SetString(PyExc_ValueError, "out is not rows of pixels of bytes");
    PyBuffer_Release(view);
    return 0;
}

static int hold_offsets(PyObject *object, Py_buffer *view, penstock_tiles *tiles)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) != 0)
        return 0;
    tiles->offsets = view->buf;
    tiles->count = (size_t)view->len / sizeof *tiles->offsets;
    if ((size_t)view->len % sizeof *tiles->offsets == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "offsets are not of 8 bytes each");
    PyBuffer_Release(view);
    return 0;
}

static PyObject *read_into(int descriptor, const penstock_tiles *tiles, const penstock_rows *rows)
{
    const char *problem = penstock_tiles_problem(tiles, rows);
    if (problem != NULL) {
        PyErr_SetString(PyExc_ValueError, problem);
        return NULL;
    }
    penstock_tiles_answer answer;
    Py_BEGIN_ALLOW_THREADS
    answer = penstock_read_tiles(descriptor, tiles, rows);
    Py_END_ALLOW_THREADS
    if (answer == PENSTOCK_TILES_FAILED)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (answer == PENSTOCK_TILES_ENDED) {
        PyErr_SetString(PyExc_EOFError, "the file ends within its tiles");
        return NULL;
    }
    return PyBool_FromLong(answer == PENSTOCK_TILES_DONE);
}

PyObject *penstock_read_tiles_call(PyObject *module, PyObject *arguments)
{
    PyObject *offsets, *out, *answer = NULL;
    Py_buffer offsets_view, out_view;
    penstock_tiles tiles;
    penstock_rows rows;
    long long row_bytes, left_bytes;
    int descriptor;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iOLLO", &descriptor, &offsets, &row_bytes, &left_bytes, &out))
        return NULL;
    tiles.row_bytes = row_bytes;
    tiles.left_bytes = left_bytes;
    if (hold_offsets(offsets, &offsets_view, &tiles)) {
        if (hold_rows(out, &out_view, &rows)) {
            answer = read_into(descriptor, &tiles, &rows);
            PyBuffer_Release(&out_view);
        }
        PyBuffer_Release(&offsets_view);
    }
    return answer;
}

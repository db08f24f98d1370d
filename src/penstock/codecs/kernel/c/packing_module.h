/* The calls of packing_module.c, for the table in module.c. */
#ifndef PENSTOCK_PACKING_MODULE_H
#define PENSTOCK_PACKING_MODULE_H

#define PENSTOCK_LOOK_AT_FILES_TEXT                                                                                    \
    "look_at_files(paths, states)\n"                                                                                   \
    "Fill n×2 int64 with size and time of change in ns; the size of what is no regular file, or not there, is −1."
#define PENSTOCK_READ_FILES_TEXT                                                                                       \
    "read_files(paths, states, out, is_read)\n"                                                                        \
    "Read files of these states one after another into out; is_read says which were read whole and unchanged."
#define PENSTOCK_MEASURE_HALVED_TEXT                                                                                   \
    "measure_halved(sources, least_side, sums)\n"                                                                      \
    "Fill n×7 uint64 with pixels, sums and squares of JPEGs at half their size; no pixels where that is not possible."
#define PENSTOCK_JPEG_HEADERS_TEXT                                                                                     \
    "jpeg_headers(sources, headers)\n"                                                                                 \
    "Fill n×4 int64 with width, height, channels and bits of JPEGs; zeros where that needs a second look."

PyObject *penstock_look_at_files_call(PyObject *module, PyObject *arguments);
PyObject *penstock_read_files_call(PyObject *module, PyObject *arguments);
PyObject *penstock_measure_halved_call(PyObject *module, PyObject *arguments);
PyObject *penstock_jpeg_headers_call(PyObject *module, PyObject *arguments);

#endif

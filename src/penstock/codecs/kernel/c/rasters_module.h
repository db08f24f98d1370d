/* The call of rasters_module.c, for the table in module.c. */
#ifndef PENSTOCK_RASTERS_MODULE_H
#define PENSTOCK_RASTERS_MODULE_H

#define PENSTOCK_READ_TILES_TEXT                                                                                       \
    "read_tiles(descriptor, offsets, row_bytes, left_bytes, out)\n"                                                    \
    "Fill H×W×3 uint8 with rows of tiles at these int64 offsets of a file; False where the system cannot."

PyObject *penstock_read_tiles_call(PyObject *module, PyObject *arguments);

#endif

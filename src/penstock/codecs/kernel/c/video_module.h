/* The call of video_module.c, for the table in module.c. */
#ifndef PENSTOCK_VIDEO_MODULE_H
#define PENSTOCK_VIDEO_MODULE_H

#define PENSTOCK_PLANES_TO_RGB_TEXT                                                                                    \
    "planes_to_rgb(planes, lines, window, chroma, matrix, size, out)\n"                                           \
    "Reduce a window of three planes of YUV, with so many bytes from line to line, to RGB of a size, in out."

PyObject *penstock_planes_to_rgb_call(PyObject *module, PyObject *arguments);

#endif

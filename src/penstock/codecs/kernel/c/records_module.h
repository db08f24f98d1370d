/* The calls of records_module.c, for the table in module.c. */
#ifndef PENSTOCK_RECORDS_MODULE_H
#define PENSTOCK_RECORDS_MODULE_H

#define PENSTOCK_CRC32C_TEXT                                                                                           \
    "masked_crc32c(data)\n"                                                                                            \
    "The checksum of TFRecords."
#define PENSTOCK_FRAME_TEXT                                                                                            \
    "frame(pieces)\n"                                                                                                  \
    "Pairs of what records have before and behind payloads, each of which is given in three pieces."
#define PENSTOCK_FRAME_EXAMPLES_TEXT                                                                                   \
    "frame_examples(pieces, name)\n"                                                                                   \
    "Pairs of what records have before and behind the bytes of a feature, given with the entries around it."
#define PENSTOCK_SCAN_RECORDS_TEXT                                                                                     \
    "scan_records(data, position, places)\n"                                                                           \
    "Fill n×2 int64 with offset and length of payloads; returns how many, where it stopped, and why."
#define PENSTOCK_CHECK_RECORDS_TEXT                                                                                    \
    "check_records(buffers, places, is_whole)\n"                                                                       \
    "Fill n of uint8 with whether each payload (n×3 int64: buffer, offset, length) has its checksum behind it."
#define PENSTOCK_FIND_FEATURES_TEXT                                                                                    \
    "find_features(data, places, names, features, is_example)\n"                                                       \
    "Fill n×m×5 int64 with kind, offset, size, count and first whole number of m features of n Examples."

PyObject *penstock_masked_crc32c_call(PyObject *module, PyObject *data);
PyObject *penstock_frame_call(PyObject *module, PyObject *pieces);
PyObject *penstock_frame_examples_call(PyObject *module, PyObject *arguments);
PyObject *penstock_scan_records_call(PyObject *module, PyObject *arguments);
PyObject *penstock_check_records_call(PyObject *module, PyObject *arguments);
PyObject *penstock_find_features_call(PyObject *module, PyObject *arguments);

#endif

"""HDF5 files: arrays, encoded images, and frame files of DeepEthogram."""

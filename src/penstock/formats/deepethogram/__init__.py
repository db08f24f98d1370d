"""A DeepEthogram project as it lies on the disk; read, never written.

project_config.yaml        behaviours, data folder           project_settings
                           augs, train, compute              project_training
DATA/<video>/              one folder for each video          project_folders
    <video>.avi, .h5, or a folder of frames; record.yaml
    <video>_labels.csv (or .h5)                               hdf5_labels
DATA/split.yaml            train, val, test                   project_splits
                           all of it as a source              deepethogram
"""

"""Videos as frames with labels.

video_lists      which videos are meant            frame_labels     labels of one video, from rows or events
video_files      one file: stream and exact table  label_rows       DeepEthogram's tables
video_cursors    random access, per thread         label_events     start and stop in frames or seconds
frame_folders    numbered pictures as a video      boris            BORIS tabular events
frame_hdf5       DeepEthogram's HDF5               label_matching   which labels belong to which video
framing          region, fit and size              video_parts      one video as a part of the source
pictures         a frame on its way to RGB         video_frames     parts as a source; videos: the one of plain files
"""

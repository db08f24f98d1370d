"""The folder that a training leaves, in plain files; reading it needs no torch."""

"""From videos to ethograms, frame by frame."""

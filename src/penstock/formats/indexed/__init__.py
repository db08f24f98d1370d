"""Many samples in few large files: an index made once and kept, files mapped, samples as slices of them."""

"""What holds a training back: hops, disk and model are measured, and remedies are tried on a few samples."""

"""NumPy arrays, in memory and as .npy or .npz files."""

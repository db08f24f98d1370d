"""Sources without random access, and sequences whose items are batches."""

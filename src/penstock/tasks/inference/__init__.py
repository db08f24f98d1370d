"""Networks made to answer fast: copies that are never trained."""

"""Arrow in files: Parquet, and the folders that Hugging Face writes."""

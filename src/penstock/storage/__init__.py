"""What lies between files and memory: the cache folder, and advice to the system about mapped bytes."""

"""Who does it: the calling thread, threads, or other processes. All take tasks and give the same bits."""

"""One file for each format: what of a sample it holds, how a piece of it is written, and what is written at the end."""

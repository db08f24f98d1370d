"""What is made once and kept: samples in memory or in a pack, and what a filter chose."""

"""Speed and memory, as ratios taken in one run: alternating rounds, because machines are noisy."""

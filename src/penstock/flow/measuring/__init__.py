"""What each hop costs, as numbers, as text for Prometheus and as lines of JSON."""

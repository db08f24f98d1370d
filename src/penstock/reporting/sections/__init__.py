"""The parts of a report, each a small function from what is told of a Run to HTML, or to None if there is nothing."""

"""Search: question analysis, candidates, filters and packing."""

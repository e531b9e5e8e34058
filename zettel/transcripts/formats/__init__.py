"""One file for each transcript format, beside the helpers that only these formats use."""

"""Annotators: turn events into note fields, by extraction before the commit, by a model, or from a file."""

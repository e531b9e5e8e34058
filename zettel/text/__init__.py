"""Text analysis with pure functions: tokens, names, dates, statements, and the index entries of a note."""

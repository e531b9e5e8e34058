"""What a text contains: tokens, names, dates, statements, and the index entries of a note. Pure functions."""

"""Text analysis with pure functions: tokens, names, dates, statements, facts, secrets, and a note's index entries."""

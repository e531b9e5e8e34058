"""Answers of a language model from contexts of several systems, graded by a judge model."""

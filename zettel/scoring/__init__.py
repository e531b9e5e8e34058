"""What ranks the candidates: local features, the walk over the links, and the two put together.

A scorer is a pure function of a question and its candidates. ``FusionScorer`` is the default.
"""

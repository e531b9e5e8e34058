"""Rules that improve notes as others arrive: changes of fact, duplicates, communities, insights, lessons, decay.

Pure functions of notes; the jobs in ``zettel.jobs`` apply them. The ``by_model`` modules call a language model.
"""

// True if the note of an index node i is visible.
i.words IS NOT NULL
  //: when as_of
  AND i.valid_from <= $as_of
  //: end

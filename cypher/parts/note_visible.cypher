// True if a note n is visible.
n.archived IS NULL
  //: when as_of
  AND (n.valid_from IS NULL OR n.valid_from <= $moment)
  //: end

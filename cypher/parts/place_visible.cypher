// True if the note of an index node i with a place is visible. Archived notes have no place.
//: when as_of
i.valid_from <= $as_of
//: otherwise
true
//: end

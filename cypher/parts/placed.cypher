// Whether the note of an index node i that stands in a session is visible: archived ones stand in none.
//: when as_of
i.valid_from <= $as_of
//: otherwise
true
//: end

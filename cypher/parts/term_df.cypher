// The number of visible notes with the term t.
//: when as_of
COUNT { (t)<-[:HAS_TERM]-(n:Note) WHERE {{note_visible}} }
//: otherwise
COUNT { (t)<-[:HAS_TERM]-() }
//: end

// How many visible notes hold the Term t.
//: when as_of
COUNT { (t)<-[:HAS_TERM]-(n:Note) WHERE {{seen}} }
//: otherwise
COUNT { (t)<-[:HAS_TERM]-() }
//: end

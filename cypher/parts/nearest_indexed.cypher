// The notes of highest cosine from the vector index. It contains all scopes, so $reach exceeds the number of notes
// needed.
CALL db.index.vector.queryNodes('zettel_vectors_{{dim}}', $reach, $vector) YIELD node AS v, score AS cosine
WHERE v.scope = $scope AND v.space = $space AND v.shown
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n)
WHERE {{note_matches}}
//: end
WITH v, cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

// The notes of highest cosine among the vectors that may not be in the vector index yet.
MATCH (v:Vector)
WHERE v.scope = $scope AND v.space = $space AND v.changed > s.indexed AND v.shown
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n:Note)
WHERE {{note_matches}}
//: end
WITH v, vector.similarity.cosine(v.embedding, $vector) AS cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

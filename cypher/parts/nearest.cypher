// The notes of highest cosine, from a comparison with every vector of the scope.
MATCH (v:Vector)
WHERE v.scope = $scope AND v.space = $space AND v.changed >= 0 AND v.shown
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n:Note)
WHERE {{note_matches}}
//: end
WITH v, vector.similarity.cosine(v.embedding, $vector) AS cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

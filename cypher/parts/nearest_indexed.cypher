// The notes of highest cosine that the index finds. It knows no scopes, so more are asked for than are wanted.
CALL db.index.vector.queryNodes('zettel_vectors_{{dim}}', $reach, $vector) YIELD node AS v, score AS cosine
WHERE v.scope = $scope AND v.space = $space AND v.shown
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n)
WHERE {{passing}}
//: end
WITH v, cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

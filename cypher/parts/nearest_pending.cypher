// The notes of highest cosine among those whose vectors may not be in the index yet.
MATCH (v:Vector)
WHERE v.scope = $scope AND v.space = $space AND v.changed > s.indexed AND v.shown
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n:Note)
WHERE {{passing}}
//: end
WITH v, vector.similarity.cosine(v.embedding, $vector) AS cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

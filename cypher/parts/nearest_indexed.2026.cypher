// The notes of highest cosine in the scope, from the vector index.
MATCH (v:Vector{{dim}})
SEARCH v IN (
  VECTOR INDEX zettel_vectors_{{dim}} FOR $vector
  WHERE v.scope = $scope AND v.space = $space AND v.shown = true
  LIMIT $reach
) SCORE AS cosine
//: when narrowed
MATCH (v)<-[:HAS_VECTOR]-(n)
WHERE {{note_matches}}
//: end
WITH v, cosine
ORDER BY cosine DESC, v.seq LIMIT $pool

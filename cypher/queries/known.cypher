// All notes of a scope that were recorded by a moment, as they began and with all that happened to them since, and how
// near their vectors are to the question's.
MATCH (now:Note)
WHERE now.scope = $scope AND now.seq >= 0 AND now.recorded_at <= $known
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
OPTIONAL MATCH (now)-[:HAS_VECTOR]->(v:Vector) WHERE v.space = $space AND v.embedding IS NOT NULL
WITH now, coalesce(b, now) AS n, CASE WHEN v IS NULL OR $vector IS NULL THEN 0.0
  ELSE 2 * vector.similarity.cosine(v.embedding, $vector) - 1 END AS cosine
RETURN n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at)}
  AS base, COLLECT { MATCH (now)-[:REVISED]->(r) RETURN r.body ORDER BY r.seq } AS revisions, cosine

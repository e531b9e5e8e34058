// The notes of a scope that were recorded by a time: base, revisions, and cosine with the question's vector.
MATCH (now:Note)
WHERE now.scope = $scope AND now.seq >= 0 AND now.recorded_at <= $known
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
OPTIONAL MATCH (now)-[:HAS_VECTOR]->(v:Vector) WHERE v.space = $space AND v.embedding IS NOT NULL
WITH now, coalesce(b, now) AS n, CASE WHEN v IS NULL OR $vector IS NULL THEN 0.0
  ELSE 2 * vector.similarity.cosine(v.embedding, $vector) - 1 END AS cosine
RETURN {{stored_note}} AS base, {{revisions}} AS revisions, cosine

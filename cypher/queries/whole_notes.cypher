// The next notes as they began, with their Revisions and vectors.
MATCH (now:Note)
WHERE now.scope = $scope AND now.seq > $after
WITH now ORDER BY now.seq LIMIT $limit
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
WITH now, coalesce(b, now) AS n
RETURN now.seq AS seq,
  n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at)}
    AS base,
  COLLECT { MATCH (now)-[:REVISED]->(r) RETURN r.body ORDER BY r.seq } AS revisions,
  COLLECT { MATCH (now)-[:HAS_VECTOR]->(v) RETURN [v.space, v.bytes] ORDER BY v.space } AS vectors
ORDER BY now.seq

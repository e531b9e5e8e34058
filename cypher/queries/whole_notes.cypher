// The next notes: base, revisions and vectors.
MATCH (now:Note)
WHERE now.scope = $scope AND now.seq > $after
WITH now ORDER BY now.seq LIMIT $limit
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
WITH now, coalesce(b, now) AS n
RETURN now.seq AS seq, {{stored_note}} AS base, {{revisions}} AS revisions,
  COLLECT { MATCH (now)-[:HAS_VECTOR]->(v) RETURN [v.space, v.bytes] ORDER BY v.space } AS vectors
ORDER BY now.seq

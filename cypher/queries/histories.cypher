// First states and Revisions of notes.
UNWIND $ids AS id
MATCH (now:Note {scope: $scope, id: id})
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
WITH now, coalesce(b, now) AS n
RETURN n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at)}
  AS base, COLLECT { MATCH (now)-[:REVISED]->(r) RETURN r.body ORDER BY r.seq } AS revisions

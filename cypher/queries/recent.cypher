// Bases and checkpoints of notes, with the later revisions.
UNWIND $ids AS id
MATCH (now:Note {scope: $scope, id: id})
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
WITH now, b.checkpoint AS checkpoint, coalesce(b.checkpoint_version, 0) AS since, coalesce(b, now) AS n
RETURN {{stored_note}} AS base, checkpoint,
  COLLECT { MATCH (now)-[:REVISED]->(r) WHERE r.version > since RETURN r.body ORDER BY r.seq } AS revisions

// Store vectors of one length, and return how many of their notes exist. A zero vector has no embedding. A vector in
// the active set replaces the note's vectors in other sets, which are of an older wording.
UNWIND $vectors AS row
MATCH (n:Note {scope: $scope, id: row.note})-[:FOUND_BY]->(i:Index)
MERGE (v:Vector {scope: $scope, id: row.id})
ON CREATE SET v:Vector{{dim}}, v.note = n.id, v.space = row.space, v.seq = n.seq
MERGE (n)-[:HAS_VECTOR]->(v)
SET v += row, v.changed = $changes, i.changed = $changes, v.shown = row.embedding IS NOT NULL AND n.archived IS NULL
WITH n, v
OPTIONAL MATCH (n)-[:HAS_VECTOR]->(former:Vector)
WHERE former.space <> v.space AND EXISTS { (:Space {id: v.space, active: true}) }
DETACH DELETE former
RETURN count(DISTINCT v) AS vectors

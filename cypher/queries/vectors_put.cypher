// Store vectors of one size; how many of the notes are there. A vector of zeros has no direction and no embedding.
UNWIND $vectors AS row
MATCH (n:Note {scope: $scope, id: row.note})-[:FOUND_BY]->(i:Index)
MERGE (v:Vector {scope: $scope, id: row.id})
ON CREATE SET v:Vector{{dim}}, v.note = n.id, v.space = row.space, v.seq = n.seq
MERGE (n)-[:HAS_VECTOR]->(v)
SET v += row, v.changed = $changes, i.changed = $changes, v.shown = row.embedding IS NOT NULL AND n.archived IS NULL
RETURN count(v) AS vectors

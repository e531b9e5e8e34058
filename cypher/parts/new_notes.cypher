// Store new notes with their vectors, their jobs and all that they are found by, at the scope's count `changes`. Who writes
// does not wait for the vector index: vectors come into it later, many at once.
UNWIND $notes AS row
CREATE (n:Note)
SET n = row.note
CREATE (n)-[:FOUND_BY]->(i:Index {scope: $scope, id: row.id, seq: row.note.seq})
FOREACH (vector IN row.vectors |
  CREATE (n)-[:HAS_VECTOR]->(v:Vector)
  SET v = vector, v.changed = changes
)
FOREACH (job IN row.jobs |
  CREATE (j:Job)-[:ABOUT]->(n)
  SET j = job
)
WITH changes, collect(n) AS notes, collect(i) AS found
{{indexing}}

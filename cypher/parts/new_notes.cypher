// Create notes with their vectors, jobs and index, at the scope's change count `changes`. The vectors enter the vector
// index later, many at once, so that writers do not wait for it.
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
WITH changes, collect(n) AS notes, collect(i) AS indexes
{{index_notes}}

// Set notes to new states and add the revisions. The first revision of a note stores its base.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})
CALL (n) {
  WITH n WHERE NOT EXISTS { (n)-[:BEGAN_AS]->() }
  CREATE (n)-[:BEGAN_AS]->(b:Base)
  SET b = properties(n)
}
SET n = row.note
CREATE (n)-[:REVISED]->(r:Revision)
SET r = row.revision
WITH n, r, row
CALL (n, row) {
  WITH n, row WHERE row.checkpoint IS NOT NULL
  MATCH (n)-[:BEGAN_AS]->(b)
  SET b.checkpoint = row.checkpoint, b.checkpoint_version = row.checkpoint_version
}
CALL (r, row) {
  UNWIND row.cited AS id
  MATCH (c:Note {scope: $scope, id: id})
  CREATE (r)-[:CITES]->(c)
}
CALL (n, row) {
  MATCH (n)-[:HAS_VECTOR]->(v:Vector)
  WHERE v.shown <> (row.shown AND v.embedding IS NOT NULL)
  SET v.shown = row.shown AND v.embedding IS NOT NULL, v.changed = $changes
}
RETURN count(n) AS notes

// Restore the histories of notes: base, revisions, and the events of all versions. The ids of cited notes stay in
// `cited` until arriving_page, because these notes may not exist yet.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})
CREATE (n)-[:BEGAN_AS]->(b:Base)
SET b = row.base
WITH n, row
CALL (n, row) {
  UNWIND row.revisions AS revision
  CREATE (n)-[:REVISED]->(r:Revision)
  SET r = revision.revision
}
CALL (n, row) {
  UNWIND row.events AS id
  MATCH (e:Event {scope: $scope, id: id})
  MERGE (n)-[:FROM]->(e)
}

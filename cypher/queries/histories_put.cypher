// Give notes their whole histories: how they began, their Revisions, and the events that any of these rest on. What a
// Revision cites may not be there yet, so it is only noted.
UNWIND $notes AS row
MATCH (n:Note {scope: $scope, id: row.id})
CREATE (n)-[:BEGAN_AS]->(b:Base)
SET b = row.base
WITH n, row
CALL (n, row) {
  UNWIND row.revisions AS one
  CREATE (n)-[:REVISED]->(r:Revision)
  SET r = one.revision
}
CALL (n, row) {
  UNWIND row.events AS id
  MATCH (e:Event {scope: $scope, id: id})
  MERGE (n)-[:FROM]->(e)
}

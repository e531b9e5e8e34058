// Give the scope's key to a page of each kind of node of a restore. Returns true if no nodes remain. Revisions are
// linked to the notes that they cite before these notes change their key.
CALL () {
  MATCH (r:Revision) WHERE r.scope = $place AND r.id IS NOT NULL
  WITH r LIMIT $page
  WITH collect(r) AS page
  CALL (page) {
    UNWIND page AS r
    UNWIND r.cited AS id
    MATCH (c:Note {scope: $place, id: id})
    MERGE (r)-[:CITES]->(c)
  }
  FOREACH (r IN page | SET r.scope = $scope, r.cited = null)
  RETURN size(page) AS revisions
}
CALL (revisions) {
  WITH * WHERE revisions < $page
  MATCH (n:Note) WHERE n.scope = $place AND n.id IS NOT NULL
  WITH n LIMIT $page
  OPTIONAL MATCH (n)-[:BEGAN_AS]->(b)
  SET n.scope = $scope, b.scope = $scope
  RETURN count(*) AS notes
}
CALL () {
  MATCH (x:Event) WHERE x.scope = $place AND x.id IS NOT NULL
  WITH x LIMIT $page
  SET x.scope = $scope, x.place = CASE WHEN x.session IS NULL THEN x.place ELSE $scope + substring(x.place, 32) END
  RETURN count(*) AS events
}
CALL () {
  MATCH (x:Index) WHERE x.scope = $place AND x.id IS NOT NULL
  WITH x LIMIT $page
  SET x.scope = $scope, x.place = $scope + substring(x.place, 32),
    x.titled = CASE WHEN x.titled IS NULL THEN null ELSE $scope END
  RETURN count(*) AS indexes
}
CALL () { MATCH (x:Term) WHERE x.scope = $place AND x.name IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS terms }
CALL () { MATCH (x:Word) WHERE x.scope = $place AND x.name IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS words }
CALL () { MATCH (x:Session) WHERE x.scope = $place AND x.name IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS sessions }
CALL () { MATCH (x:Vector) WHERE x.scope = $place AND x.id IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS vectors }
CALL () { MATCH (x:Job) WHERE x.scope = $place AND x.id IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS jobs }
CALL () { MATCH (x:Tombstone) WHERE x.scope = $place AND x.identity IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS tombstones }
CALL () { MATCH (x:Usage) WHERE x.scope = $place AND x.note IS NOT NULL WITH x LIMIT $page SET x.scope = $scope RETURN count(*) AS usages }
RETURN all(count IN [revisions, notes, events, indexes, terms, words, sessions, vectors, jobs, tombstones, usages] WHERE count < $page) AS done

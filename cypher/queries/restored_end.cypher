// Make what was restored the scope: every node gets its key, and Revisions lead to what they cite.
MATCH (s:Restoring {scope: $place})
CALL (s) {
  MATCH (r:Revision) WHERE r.scope = $place AND r.id IS NOT NULL
  UNWIND r.cited AS id
  MATCH (c:Note {scope: $place, id: id})
  MERGE (r)-[:CITES]->(c)
}
CALL (s) { MATCH (x:Revision) WHERE x.scope = $place AND x.id IS NOT NULL SET x.scope = $scope, x.cited = null }
CALL (s) {
  MATCH (x:Event) WHERE x.scope = $place AND x.id IS NOT NULL
  SET x.scope = $scope, x.place = CASE WHEN x.session IS NULL THEN x.place ELSE $scope + substring(x.place, 32) END
}
CALL (s) {
  MATCH (x:Index) WHERE x.scope = $place AND x.id IS NOT NULL
  SET x.scope = $scope, x.place = $scope + substring(x.place, 32),
    x.titled = CASE WHEN x.titled IS NULL THEN null ELSE $scope END
}
CALL (s) {
  MATCH (x:Note) WHERE x.scope = $place AND x.id IS NOT NULL
  SET x.scope = $scope
  WITH x
  MATCH (x)-[:BEGAN_AS]->(b)
  SET b.scope = $scope
}
CALL (s) { MATCH (x:Term) WHERE x.scope = $place AND x.name IS NOT NULL SET x.scope = $scope }
CALL (s) { MATCH (x:Word) WHERE x.scope = $place AND x.name IS NOT NULL SET x.scope = $scope }
CALL (s) { MATCH (x:Vector) WHERE x.scope = $place AND x.id IS NOT NULL SET x.scope = $scope }
CALL (s) { MATCH (x:Job) WHERE x.scope = $place AND x.id IS NOT NULL SET x.scope = $scope }
CALL (s) { MATCH (x:Tombstone) WHERE x.scope = $place AND x.identity IS NOT NULL SET x.scope = $scope }
SET s.scope = $scope, s:Scope
REMOVE s:Restoring

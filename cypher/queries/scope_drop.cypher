// Destroy all of a scope in one transaction; how many notes it had.
MATCH (s:Scope|Restoring {scope: $scope})
CALL (s) { MATCH (n:Note) WHERE n.scope = s.scope AND n.id IS NOT NULL RETURN collect(n) AS notes }
CALL (s) { MATCH (x:Event) WHERE x.scope = s.scope AND x.id IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Index) WHERE x.scope = s.scope AND x.id IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Term) WHERE x.scope = s.scope AND x.name IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Word) WHERE x.scope = s.scope AND x.name IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Revision) WHERE x.scope = s.scope AND x.id IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Vector) WHERE x.scope = s.scope AND x.id IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Job) WHERE x.scope = s.scope AND x.id IS NOT NULL DETACH DELETE x }
CALL (s) { MATCH (x:Tombstone) WHERE x.scope = s.scope AND x.identity IS NOT NULL DETACH DELETE x }
CALL (notes) { UNWIND notes AS n OPTIONAL MATCH (n)-[:BEGAN_AS]->(b) DETACH DELETE b, n }
DETACH DELETE s
RETURN size(notes) AS notes

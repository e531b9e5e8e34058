// Delete all derived data of a scope except its vectors.
CALL () { MATCH (x:Term) WHERE x.scope = $scope AND x.name IS NOT NULL DETACH DELETE x }
CALL () { MATCH (x:Word) WHERE x.scope = $scope AND x.name IS NOT NULL DETACH DELETE x }
CALL () { MATCH (x:Session) WHERE x.scope = $scope AND x.name IS NOT NULL DETACH DELETE x }
CALL () { MATCH (x:Index) WHERE x.scope = $scope AND x.id IS NOT NULL DETACH DELETE x }
CALL () {
  MATCH (n:Note) WHERE n.scope = $scope AND n.seq >= 0
  MATCH (n)-[l:{{links}}]->()
  WHERE l.decided
  DELETE l
}

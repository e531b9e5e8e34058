// Make a restore the scope, if the scope does not exist and is not being deleted or imported. Returns true on success.
// A temporary node locks the scope's key for the rest of the transaction.
MERGE (s:Scope {scope: $scope})
WITH s, s.secret IS NULL AND NOT EXISTS { MATCH (x:Leaving|Arriving) WHERE x.of = s.scope } AS free
CALL (s, free) {
  WITH s WHERE free
  MATCH (r:Restoring {scope: $place})
  SET r:Arriving
  REMOVE r:Restoring
  DELETE s
}
RETURN free

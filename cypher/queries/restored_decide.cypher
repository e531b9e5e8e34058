// Decide that what was restored is the scope from now on, if there is none and none comes or goes: whether that is so.
// The scope's key is locked for the rest of the transaction by a node that does not stay.
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

// Begin to delete a scope: hide it, and reserve its key until all nodes are deleted. Returns how many notes it has.
MATCH (s:Scope|Restoring {scope: $scope})
SET s:Leaving, s.of = s.scope
REMOVE s:Scope, s:Restoring
RETURN COUNT { MATCH (n:Note) WHERE n.scope = $scope AND n.id IS NOT NULL } AS notes

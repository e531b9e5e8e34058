// Begin to destroy a scope: nobody finds it any more, and nobody can begin another under its key until all of it is gone.
// How many notes it has.
MATCH (s:Scope|Restoring {scope: $scope})
SET s:Leaving, s.of = s.scope
REMOVE s:Scope, s:Restoring
RETURN COUNT { MATCH (n:Note) WHERE n.scope = $scope AND n.id IS NOT NULL } AS notes

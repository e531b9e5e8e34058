// Lock a scope, if it exists, for the rest of the transaction.
MATCH (s:Scope {scope: $scope})
SET s.locked = $token

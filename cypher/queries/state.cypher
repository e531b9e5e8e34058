// The state of a scope.
MATCH (s:Scope {scope: $scope})
RETURN {{scope_state}}

// Where a scope stands.
MATCH (s:Scope {scope: $scope})
RETURN {{standing}}

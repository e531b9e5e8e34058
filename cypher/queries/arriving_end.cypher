// All nodes of what was restored have the scope's key: from now on it is the scope.
MATCH (x:Arriving {scope: $place})
SET x:Scope, x.scope = $scope
REMOVE x:Arriving

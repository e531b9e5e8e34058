// Complete a restore: its node becomes the scope.
MATCH (x:Arriving {scope: $place})
SET x:Scope, x.scope = $scope
REMOVE x:Arriving

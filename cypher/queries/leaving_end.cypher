// Complete a deletion: the scope's key is free again.
MATCH (x:Leaving {scope: $scope})
DETACH DELETE x

// The scope is destroyed: its key is free.
MATCH (x:Leaving {scope: $scope})
DETACH DELETE x

// Scopes whose deletion or restore is unfinished: all, or those with a key. `of` is the key that they reserve.
MATCH (x:Leaving|Arriving)
WHERE $scope IS NULL OR $scope IN [x.scope, x.of]
RETURN x.scope AS scope, x.of AS of, x.name AS name, x:Leaving AS leaving ORDER BY x.born, x.scope

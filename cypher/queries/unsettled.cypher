// Scopes that are being destroyed, or made visible, in several transactions: all, or those of a key. `of` is the
// key that they take up, so that nobody can begin a scope under it.
MATCH (x:Leaving|Arriving)
WHERE $scope IS NULL OR $scope IN [x.scope, x.of]
RETURN x.scope AS scope, x.of AS of, x.name AS name, x:Leaving AS leaving ORDER BY x.born, x.scope

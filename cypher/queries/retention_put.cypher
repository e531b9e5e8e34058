// Set or remove the retention of a scope.
MATCH (s:Scope|Restoring {scope: $scope})
SET s.retention = $retention

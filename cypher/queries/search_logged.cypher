// A search in the log.
MATCH (x:Search {scope: $scope, id: $id})
RETURN x.body AS body

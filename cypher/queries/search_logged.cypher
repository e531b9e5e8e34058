// A logged search.
MATCH (x:Search {scope: $scope, id: $id})
RETURN x.body AS body

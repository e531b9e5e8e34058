// Keep with a search what was told of it.
MATCH (x:Search {scope: $scope, id: $search.id})
SET x = $search

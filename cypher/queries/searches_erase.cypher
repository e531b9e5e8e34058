// Delete logged searches.
UNWIND $ids AS id
MATCH (x:Search {scope: $scope, id: id})
DETACH DELETE x

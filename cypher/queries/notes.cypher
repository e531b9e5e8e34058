// Notes by id.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
RETURN {{note}} AS note

// Notes by their ids.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
RETURN {{note}} AS note

// End the links that notes decided.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[l:{{links}}]->()
WHERE l.decided
DELETE l

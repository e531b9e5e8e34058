// Forget the derived links that start or end at notes.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[l:MENTIONS]-()
WHERE NOT l.decided
WITH DISTINCT l
DELETE l

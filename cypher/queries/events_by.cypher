// The events of a principal.
MATCH (e:Event {scope: $scope, principal: $principal})
WHERE e.seq >= 0
RETURN e.id AS id ORDER BY e.seq

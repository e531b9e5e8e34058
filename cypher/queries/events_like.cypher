// Events that share an identity with one of these.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
WITH DISTINCT e.identity AS identity
MATCH (e:Event {scope: $scope, identity: identity})
RETURN e.id AS id ORDER BY e.seq

// Events by id.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
RETURN {{event}} AS event

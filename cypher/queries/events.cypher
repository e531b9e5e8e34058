// Events by their ids.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
RETURN {{event}} AS event

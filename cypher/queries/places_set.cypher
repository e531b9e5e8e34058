// Set the places of events in their sessions.
UNWIND $events AS row
MATCH (e:Event {scope: $scope, id: row.id})
SET e.place = left(e.place, 48) + row.place

// Delete events, leave tombstones of their identities, and return the affected sessions.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
MERGE (:Tombstone {scope: $scope, identity: e.identity})
WITH e, e.session AS session
DETACH DELETE e
RETURN collect(DISTINCT session) AS sessions

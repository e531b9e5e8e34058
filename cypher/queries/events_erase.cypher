// Destroy events and leave the keyed hashes of their identities; the sessions that lost one.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
MERGE (:Tombstone {scope: $scope, identity: e.identity})
WITH e, e.session AS session
DETACH DELETE e
RETURN collect(DISTINCT session) AS sessions

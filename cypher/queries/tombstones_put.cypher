// Create tombstones of deleted identities.
UNWIND $identities AS identity
MERGE (:Tombstone {scope: $scope, identity: identity})

// Keyed hashes of identities that were deleted.
UNWIND $identities AS identity
MERGE (:Tombstone {scope: $scope, identity: identity})

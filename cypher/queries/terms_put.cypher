// Make the Terms that are not there yet; the names come sorted, so that no two writers wait for each other.
UNWIND $names AS name
MERGE (:Term {scope: $scope, name: name})

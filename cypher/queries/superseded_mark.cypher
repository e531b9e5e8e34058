// Mark superseded notes, so that searches look up the end of validity of these only.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})-[:FOUND_BY]->(i:Index)
SET i.superseded = true, i.changed = $changes

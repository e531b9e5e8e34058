// Mark notes that another one replaced, so that a question asks only these since when.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})-[:FOUND_BY]->(i:Index)
SET i.superseded = true, i.changed = $changes

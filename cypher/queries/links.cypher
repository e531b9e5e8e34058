// Links that start or end at one of these notes.
UNWIND $ids AS id
MATCH (:Note {scope: $scope, id: id})-[l:{{links}}]-()
WITH DISTINCT l
WITH l, startNode(l).id AS source, endNode(l).id AS target
RETURN source, target, type(l) AS type, l.weight AS weight, l.reason AS reason, MICROS(l.recorded_at) AS recorded_at
ORDER BY source, type, target

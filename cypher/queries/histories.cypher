// Bases and revisions of notes.
UNWIND $ids AS id
MATCH (now:Note {scope: $scope, id: id})
OPTIONAL MATCH (now)-[:BEGAN_AS]->(b)
WITH now, coalesce(b, now) AS n
RETURN {{stored_note}} AS base, {{revisions}} AS revisions

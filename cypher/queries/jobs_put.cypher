// Queue jobs. A job that is already queued stays unchanged.
UNWIND $jobs AS row
MERGE (j:Job {scope: $scope, kind: row.kind, note: row.note, version: row.version})
ON CREATE SET j += row.job, j.queued = $now, j.batch = $token
WITH j WHERE j.batch = $token
MATCH (n:Note {scope: $scope, id: j.note})
MERGE (j)-[:ABOUT]->(n)

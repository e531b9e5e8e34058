// Delete jobs in any state.
UNWIND $jobs AS row
MATCH (j:Job {scope: $scope, kind: row.kind, note: row.note, version: row.version})
DETACH DELETE j

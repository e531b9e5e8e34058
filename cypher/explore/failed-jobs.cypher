// Failed jobs
// Jobs that ended in an error, with their notes. `zettel jobs retry` runs them again.
MATCH (job:Job {scope: $scope, state: 'failed'})
OPTIONAL MATCH (job)-[:ABOUT]->(note:Note)
RETURN job.kind AS job, job.error AS error, job.attempts AS tries, note.caption AS note, note.id AS id
ORDER BY job, id

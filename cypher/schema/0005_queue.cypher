// Due jobs in their order, of all scopes and of one: a claim reads the first ones, however long the queue is.

CREATE INDEX zettel_job_due IF NOT EXISTS FOR (x:Job) ON (x.kind, x.state, x.run_at, x.queued, x.number);
CREATE INDEX zettel_job_next IF NOT EXISTS FOR (x:Job) ON (x.scope, x.kind, x.state, x.run_at, x.queued, x.number);

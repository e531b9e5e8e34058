// Due jobs in order, of all scopes and of one scope: a claim reads only the first entries of the queue.

CREATE INDEX zettel_job_due IF NOT EXISTS FOR (x:Job) ON (x.kind, x.state, x.run_at, x.queued, x.number);
CREATE INDEX zettel_job_next IF NOT EXISTS FOR (x:Job) ON (x.scope, x.kind, x.state, x.run_at, x.queued, x.number);

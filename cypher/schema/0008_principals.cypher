// The writer of an event or of a change.

CREATE INDEX zettel_event_principal IF NOT EXISTS FOR (x:Event) ON (x.scope, x.principal);
CREATE INDEX zettel_revision_principal IF NOT EXISTS FOR (x:Revision) ON (x.scope, x.principal);

// The first layout: constraints and lookup indexes. `scope` is the opaque key of a scope. Nothing is unique or looked up
// across scopes, except the store's own nodes (Zettel, Space).

CREATE CONSTRAINT zettel_store IF NOT EXISTS FOR (x:Zettel) REQUIRE x.id IS UNIQUE;
CREATE CONSTRAINT zettel_scope IF NOT EXISTS FOR (x:Scope) REQUIRE x.scope IS UNIQUE;
CREATE CONSTRAINT zettel_restoring IF NOT EXISTS FOR (x:Restoring) REQUIRE x.scope IS UNIQUE;
CREATE CONSTRAINT zettel_event IF NOT EXISTS FOR (x:Event) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_note IF NOT EXISTS FOR (x:Note) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_index IF NOT EXISTS FOR (x:Index) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_term IF NOT EXISTS FOR (x:Term) REQUIRE (x.scope, x.name) IS UNIQUE;
CREATE CONSTRAINT zettel_word IF NOT EXISTS FOR (x:Word) REQUIRE (x.scope, x.name) IS UNIQUE;
CREATE CONSTRAINT zettel_session IF NOT EXISTS FOR (x:Session) REQUIRE (x.scope, x.name) IS UNIQUE;
CREATE CONSTRAINT zettel_revision IF NOT EXISTS FOR (x:Revision) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_vector IF NOT EXISTS FOR (x:Vector) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_job IF NOT EXISTS FOR (x:Job) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_job_once IF NOT EXISTS FOR (x:Job) REQUIRE (x.scope, x.kind, x.note, x.version) IS UNIQUE;
CREATE CONSTRAINT zettel_tombstone IF NOT EXISTS FOR (x:Tombstone) REQUIRE (x.scope, x.identity) IS UNIQUE;
CREATE CONSTRAINT zettel_space IF NOT EXISTS FOR (x:Space) REQUIRE x.id IS UNIQUE;

CREATE INDEX zettel_event_seq IF NOT EXISTS FOR (x:Event) ON (x.scope, x.seq);
CREATE INDEX zettel_event_identity IF NOT EXISTS FOR (x:Event) ON (x.scope, x.identity);
CREATE INDEX zettel_event_session IF NOT EXISTS FOR (x:Event) ON (x.scope, x.session, x.seq);
CREATE INDEX zettel_event_file IF NOT EXISTS FOR (x:Event) ON (x.scope, x.file, x.seq);
CREATE INDEX zettel_event_time IF NOT EXISTS FOR (x:Event) ON (x.scope, x.occurred_at);
CREATE INDEX zettel_event_place IF NOT EXISTS FOR (x:Event) ON (x.place);
CREATE INDEX zettel_note_seq IF NOT EXISTS FOR (x:Note) ON (x.scope, x.seq);
CREATE INDEX zettel_note_time IF NOT EXISTS FOR (x:Note) ON (x.scope, x.occurred_at);
CREATE INDEX zettel_index_place IF NOT EXISTS FOR (x:Index) ON (x.place);
CREATE INDEX zettel_index_titled IF NOT EXISTS FOR (x:Index) ON (x.titled);
CREATE INDEX zettel_revision_time IF NOT EXISTS FOR (x:Revision) ON (x.scope, x.recorded_at);
CREATE INDEX zettel_vector_change IF NOT EXISTS FOR (x:Vector) ON (x.scope, x.space, x.changed);
CREATE INDEX zettel_job_state IF NOT EXISTS FOR (x:Job) ON (x.state);

// Keyed hashes of a note's words, different in each scope. An analyzer that splits words or folds case would merge two
// hashes.
CREATE FULLTEXT INDEX zettel_words IF NOT EXISTS FOR (x:Index) ON EACH [x.words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};

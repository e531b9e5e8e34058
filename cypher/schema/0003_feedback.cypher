// The search log, and the feedback on notes.

CREATE CONSTRAINT zettel_search IF NOT EXISTS FOR (x:Search) REQUIRE (x.scope, x.id) IS UNIQUE;
CREATE CONSTRAINT zettel_usage IF NOT EXISTS FOR (x:Usage) REQUIRE (x.scope, x.note) IS UNIQUE;

CREATE INDEX zettel_search_time IF NOT EXISTS FOR (x:Search) ON (x.scope, x.asked_at, x.id);

// Cached answers and costs of language models.

CREATE CONSTRAINT zettel_answer IF NOT EXISTS FOR (x:Answer) REQUIRE (x.scope, x.key) IS UNIQUE;
CREATE CONSTRAINT zettel_use IF NOT EXISTS FOR (x:Use) REQUIRE (x.scope, x.day, x.model) IS UNIQUE;

CREATE INDEX zettel_use_day IF NOT EXISTS FOR (x:Use) ON (x.day);

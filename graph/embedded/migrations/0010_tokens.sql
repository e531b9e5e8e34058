-- The tokenizer version of the index (zettel.text.tokens). Without a row: the version at migration.
CREATE TABLE tokens (version INTEGER NOT NULL);

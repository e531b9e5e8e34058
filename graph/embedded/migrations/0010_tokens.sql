-- The version of the tokenizer that the index was made with (zettel.text.tokens). No row: the version at migration.
CREATE TABLE tokens (version INTEGER NOT NULL);

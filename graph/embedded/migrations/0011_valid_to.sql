-- The end of validity that a person set, 2^62 without one. Other ends follow from links.
ALTER TABLE notes ADD COLUMN valid_to INTEGER NOT NULL DEFAULT 4611686018427387904;

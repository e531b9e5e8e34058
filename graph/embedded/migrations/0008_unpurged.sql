-- Scopes that were dropped, and their jobs with them, since the file was last rewritten without what was deleted.
-- AUTOINCREMENT: a number that one purge has seen is never given to a later scope.
CREATE TABLE unpurged (number INTEGER PRIMARY KEY AUTOINCREMENT);

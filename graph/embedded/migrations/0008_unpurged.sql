-- Scopes that were deleted, with their jobs, since the last purge of the file.
-- AUTOINCREMENT: a later scope never gets a number that a purge has read.
CREATE TABLE unpurged (number INTEGER PRIMARY KEY AUTOINCREMENT);

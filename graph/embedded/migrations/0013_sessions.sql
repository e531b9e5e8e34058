-- The events of a session, which agents read at each turn, in order of arrival.
CREATE INDEX events_session ON events (scope, session, seq) WHERE session IS NOT NULL;

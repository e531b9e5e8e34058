// Restore the order of sessions.
WITH $sessions AS sessions, $changes AS changes
{{repair_sessions}}

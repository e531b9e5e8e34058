// Bring the order of sessions right.
WITH $sessions AS sessions, $changes AS changes
{{mending}}

// Create events.
{{new_events}}

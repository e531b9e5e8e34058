// Store events.
{{new_events}}

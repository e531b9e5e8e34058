// Create notes, and return how many notes and events there are.
WITH $changes AS changes
{{new_notes}}
RETURN size(notes) AS notes, events

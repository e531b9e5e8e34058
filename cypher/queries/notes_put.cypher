// Store new notes; how many of them and of their events there are.
WITH $changes AS changes
{{new_notes}}
RETURN size(notes) AS notes, events

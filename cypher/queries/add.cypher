// Lock a scope and write new events with their notes, if it stands where that was planned; where it stood. This is what
// scope_lock, events_put, notes_put and sessions_mend do one by one.
{{locked}}
CALL (stood, due) {
  WITH stood.changes + 1 AS changes
  WHERE due
  CALL () {
    {{new_events}}
  }
  CALL (changes) {
    {{new_notes}}
    RETURN size(notes) AS notes
  }
  CALL (sessions, changes) {
    {{mending}}
  }
}
RETURN {{stood}}

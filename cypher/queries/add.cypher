// Lock a scope and, if the batch is due, create new events with their notes. Returns the scope's previous state. This
// combines batch_begin, events_put, notes_put and sessions_repair in one statement.
{{lock_scope}}
CALL (previous, due) {
  WITH previous.changes + 1 AS changes
  WHERE due
  CALL () {
    {{new_events}}
  }
  CALL (changes) {
    {{new_notes}}
    RETURN size(notes) AS notes
  }
  CALL (sessions, changes) {
    {{repair_sessions}}
  }
}
RETURN {{previous_state}}

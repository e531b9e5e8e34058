// The properties of a note, with times in microseconds. `valid_to` is the end that a person set,
// else the start of its first successor.
n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at),
  expires_at: MICROS(n.expires_at),
  occurrences: [time IN n.occurrences | MICROS(time)],
  valid_to: coalesce(MICROS(n.valid_to), COLLECT {
    MATCH (newer:Note)-[link:SUPERSEDES]->(n)
    RETURN coalesce(MICROS(newer.valid_from), MICROS(link.recorded_at)) AS start ORDER BY start LIMIT 1
  }[0])}

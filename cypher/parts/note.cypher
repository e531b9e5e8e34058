// A note as the engine reads it: its properties, times as numbers, and when what replaced it began to hold.
n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at),
  valid_to: COLLECT {
    MATCH (newer:Note)-[how:SUPERSEDES]->(n)
    RETURN coalesce(MICROS(newer.valid_from), MICROS(how.recorded_at)) AS since ORDER BY since LIMIT 1
  }[0]}

// The stored properties of a note n, with times in microseconds.
n {.*, occurred_at: MICROS(n.occurred_at), valid_from: MICROS(n.valid_from), recorded_at: MICROS(n.recorded_at),
  expires_at: MICROS(n.expires_at),
  occurrences: [time IN n.occurrences | MICROS(time)],
  valid_to: MICROS(n.valid_to)}

// The properties of an event, with times in microseconds.
e {.*, occurred_at: MICROS(e.occurred_at), recorded_at: MICROS(e.recorded_at),
  expires_at: MICROS(e.expires_at)}

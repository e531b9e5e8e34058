// An event as the engine reads it: its properties, times as numbers.
e {.*, occurred_at: MICROS(e.occurred_at), recorded_at: MICROS(e.recorded_at)}

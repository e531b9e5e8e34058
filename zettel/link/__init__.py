"""Links that need no model: MENTIONS, exact and derived, and near links, decided by a job with a date and reason."""

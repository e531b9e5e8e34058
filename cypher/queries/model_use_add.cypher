// Add to the cost of a language model in a scope on a day.
MERGE (u:Use {scope: $scope, day: date($use.day), model: $use.model})
ON CREATE SET u.calls = 0, u.hits = 0, u.prompt_tokens = 0, u.completion_tokens = 0, u.usd = 0.0
SET u.calls = u.calls + $use.calls, u.hits = u.hits + $use.hits,
  u.prompt_tokens = u.prompt_tokens + $use.prompt_tokens,
  u.completion_tokens = u.completion_tokens + $use.completion_tokens, u.usd = u.usd + $use.usd

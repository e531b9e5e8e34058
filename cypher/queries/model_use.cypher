// The cost of language models since a day, in one scope or in all.
MATCH (u:Use)
WHERE u.day >= date($since) AND u.model IS NOT NULL
  //: when scoped
  AND u.scope = $scope
  //: end
MATCH (s:Scope {scope: u.scope})
RETURN toString(u.day) AS day, u.model AS model, sum(u.calls) AS calls, sum(u.hits) AS hits,
  sum(u.prompt_tokens) AS prompt_tokens, sum(u.completion_tokens) AS completion_tokens, sum(u.usd) AS usd
ORDER BY day, model

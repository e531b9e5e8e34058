// The tokenizer version of the index (null for stores from before versions were stored).
MATCH (z:Zettel {id: 'store'})
RETURN z.tokens AS tokens

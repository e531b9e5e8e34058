// Store the tokenizer version of the index.
MATCH (z:Zettel {id: 'store'})
SET z.tokens = $tokens

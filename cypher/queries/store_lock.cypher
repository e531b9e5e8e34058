// Lock the store for the rest of the transaction.
MERGE (z:Zettel {id: 'store'})
SET z.locked = $token

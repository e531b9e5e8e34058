// How often a word of an index node i stands in its note.
CASE WHEN i.often CONTAINS word THEN toInteger(split(split(i.often, word + '=')[1], ' ')[0]) ELSE 1 END

// What a search that asks for an earlier state of knowledge has to know of the scope as it is now.
RETURN {{anywhere}}

// Lock a scope, tell where it stood, and bring it to where a batch brings it.
{{locked}}
RETURN {{stood}}

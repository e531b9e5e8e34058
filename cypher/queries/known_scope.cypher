// The flags of a scope for a search at an earlier transaction time.
RETURN {{scope_flags}}

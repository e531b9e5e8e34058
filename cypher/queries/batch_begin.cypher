// Lock a scope, advance it if the batch is due, and return its previous state.
{{lock_scope}}
RETURN {{previous_state}}

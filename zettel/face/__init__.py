"""What a memory does, as methods: a file for each thing that people want of it, checked there and handed on to the room
that does it. ``zettel.async_memory`` puts them together."""

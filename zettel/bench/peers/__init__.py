"""``zettel bench peers``: other memories beside zettel, each in an environment and a process of its own."""

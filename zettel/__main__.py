"""``python -m zettel`` is ``zettel``."""

from zettel.cli import main

main()

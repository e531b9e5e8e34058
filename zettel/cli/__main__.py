"""``python -m zettel.cli`` is ``zettel``."""

from zettel.cli import main

main()

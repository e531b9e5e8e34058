"""Prints the OpenAPI description of the server: `python -m tests.openapi`."""

from __future__ import annotations

import json

from zettel.server.app import openapi


def main() -> None:
    print(json.dumps(openapi()))


if __name__ == "__main__":
    main()

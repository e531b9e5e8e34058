"""Picture of the page in docs/pictures/page.png (``make recording``): a search in the memory of the demo."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.draw_terminal import PICTURES
from tests.http_server import served
from tests.integration.test_page import CHROMIUM, FLAGS
from zettel import Memory

PICTURE = PICTURES / "page.png"
CONVERSATION = Path(__file__).parents[1] / "zettel" / "cli" / "demo" / "conversation.json"
QUESTION = "Who wants the boat Tystie back in the water?"
SIZE = {"width": 1440, "height": 900}
SETTLE_MS = 4_000
"""Milliseconds until the notes on the map have found their places."""


def _draw(browser: Any, url: str, key: str) -> None:
    page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
    page.add_init_script(f"sessionStorage['zettel.key'] = '{key}'; sessionStorage['zettel.scope'] = '{{}}'")
    page.goto(url)
    page.wait_for_selector("#graph[data-settled]", state="attached")
    page.fill("#question", QUESTION)
    page.keyboard.press("Enter")
    page.locator("#hits .hit").first.locator("summary").click()
    page.locator("#hits .slip").first.click()
    page.wait_for_selector("#note .links a")
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=PICTURE)


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = Path(folder, "demo.db")
        with Memory(store) as memory:
            memory.import_transcript(CONVERSATION)
            memory.evolve()
        with served(store) as server:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            _draw(browser, server.url, server.key("picture"))
            browser.close()

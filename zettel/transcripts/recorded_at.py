"""When a recording was made, as far as its file tells: Zoom and Teams write it into names, Teams into the text, too."""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import NamedTuple


class Beginning(NamedTuple):
    """When a recording began, or None, and what it is called."""

    at: datetime | None
    session: str


# GMT20240108-090000_Recording.transcript.vtt; Standup-20240108_090000-Meeting Recording.vtt, with UTC in newer ones;
# and Zoom's folder 2024-01-08 09.00.00 Standup 123456789
_NAMES = (
    re.compile(r"(?P<zone>GMT)(?P<date>\d{8})-(?P<time>\d{6})"),
    re.compile(r"(?<!\d)(?P<date>\d{8})_(?P<time>\d{6})(?P<zone>UTC)?(?!\d)"),
    re.compile(r"^(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d\.\d\d\.\d\d)(?P<zone>)(?= |$)"),
)
_TEAMS = re.compile(
    r"^(?P<month>January|February|March|April|May|June|July|August|September|October|November|December) "
    r"(?P<day>\d{1,2}), (?P<year>\d{4}), (?P<hour>\d{1,2}):(?P<minute>\d\d)\s?(?P<half>[AP])M\s*$",
    re.MULTILINE,
)
_MONTHS = {name: number for number, name in enumerate(
    "January February March April May June July August September October November December".split(), start=1
)}  # fmt: skip
_YEARS = range(1990, 2100)  # other digits in names are no dates
_ZOOMS = "meeting_saved"  # what Zoom calls all its files; the folder tells which meeting


def beginning(path: Path, head: str, zone: tzinfo) -> Beginning:
    """What the name of the file and its folder tell, and the beginning of its text; ``zone`` where none is told."""
    folder = path.resolve().parent.name
    session = folder if path.stem.startswith(_ZOOMS) else path.stem
    for text in (path.name, folder):
        for pattern in _NAMES:
            if (found := pattern.search(text)) is not None:
                digits = re.sub(r"\D", "", found["date"] + found["time"])
                try:
                    at = datetime.strptime(digits, "%Y%m%d%H%M%S")
                except ValueError:  # digits that are no date
                    continue
                if at.year not in _YEARS:
                    continue
                return Beginning(at.replace(tzinfo=timezone.utc if found["zone"] else zone), session)
    told = _TEAMS.search(head)
    if told is None:
        return Beginning(None, session)
    hour = int(told["hour"]) % 12 + (12 if told["half"] == "P" else 0)
    try:
        day = datetime(
            int(told["year"]), _MONTHS[told["month"]], int(told["day"]), hour, int(told["minute"]), tzinfo=zone
        )
    except ValueError:
        return Beginning(None, session)
    return Beginning(day if day.year in _YEARS else None, session)

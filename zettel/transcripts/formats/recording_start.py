"""Start time of a recording, from the names and texts of Zoom and Teams."""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import NamedTuple


class RecordingStart(NamedTuple):
    """The start time of a recording, or None, and its session."""

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
_YEARS = range(1990, 2100)  # other digits in names are not dates
_ZOOM_STEM = "meeting_saved"  # Zoom's name of all files; the folder names the meeting


def recording_start(path: Path, head: str, zone: tzinfo) -> RecordingStart:
    """Return start and session from the names of file and folder, and from the text's ``head``.

    Times without a zone are in ``zone``.
    """
    folder = path.resolve().parent.name
    session = folder if path.stem.startswith(_ZOOM_STEM) else path.stem
    for text in (path.name, folder):
        for pattern in _NAMES:
            if (match := pattern.search(text)) is not None:
                digits = re.sub(r"\D", "", match["date"] + match["time"])
                try:
                    at = datetime.strptime(digits, "%Y%m%d%H%M%S")
                except ValueError:  # other digits
                    continue
                if at.year not in _YEARS:
                    continue
                return RecordingStart(at.replace(tzinfo=timezone.utc if match["zone"] else zone), session)
    teams = _TEAMS.search(head)
    if teams is None:
        return RecordingStart(None, session)
    hour = int(teams["hour"]) % 12 + (12 if teams["half"] == "P" else 0)
    try:
        day = datetime(
            int(teams["year"]), _MONTHS[teams["month"]], int(teams["day"]), hour, int(teams["minute"]), tzinfo=zone
        )
    except ValueError:
        return RecordingStart(None, session)
    return RecordingStart(day if day.year in _YEARS else None, session)

"""Check that sources, changelog and citation name the version of a tag: python -m dev.tools.release_check v1.2.3"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ("CHANGELOG.md", "CITATION.cff", "src/superarm/__init__.py")
"""The files that name the version."""


def read_files() -> list[str]:
    return [(ROOT / name).read_text(encoding="utf-8") for name in FILES]


def released_versions(changelog: str) -> list[tuple[str, str]]:
    """The versions of the changelog with their dates, newest first; [Unreleased] is none."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+\S*)\] - (\d{4}-\d{2}-\d{2})$", changelog, re.M)


def find_faults(tag: str, changelog: str, citation: str, sources: str) -> list[str]:
    """What contradicts the tag."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        return [f"{tag} is no version: tag v1.2.3 or v1.2.3rc1"]
    version = tag.removeprefix("v")
    released = released_versions(changelog)
    faults = []
    if not released or released[0][0] != version:
        faults.append(f"CHANGELOG.md: the first section after [Unreleased] is not [{version}] - YYYY-MM-DD")
    elif f"\ndate-released: {released[0][1]}\n" not in citation:
        faults.append(f"CITATION.cff: date-released is not {released[0][1]}")
    if f"\nversion: {version}\n" not in citation:
        faults.append(f"CITATION.cff: version is not {version}")
    if f'\n__version__ = "{version}"\n' not in sources:
        faults.append(f"{FILES[2]}: __version__ is not {version}")
    return faults


if __name__ == "__main__":
    found = find_faults(sys.argv[1], *read_files())
    print("\n".join(found) or f"{sys.argv[1]}: sources, changelog and citation agree")
    sys.exit(1 if found else 0)

"""Prepare the files of a release: python -m dev.tools.release 1.0.0

The changelog's section [Unreleased] becomes that of the version, with today's date (UTC), below a new empty one, and
the citation and ``superarm.__version__`` name it. ``git diff`` then shows what is to be committed and tagged; see
CONTRIBUTING.md.
"""

import re
import sys
from datetime import UTC, datetime

from dev.tools.release_check import FILES, ROOT, find_faults, read_files

SECTION = "## [Unreleased]\n"


def name_version(changelog: str, citation: str, sources: str, version: str, date: str) -> tuple[str, str, str]:
    """Changelog, citation and sources of the release ``version`` at ``date``."""
    before, heading, entries = changelog.partition(SECTION)
    own = entries.partition("\n## [")[0]
    if not heading or not re.search(r"^- ", own, re.M):
        raise ValueError("CHANGELOG.md has no entries below [Unreleased]")
    changelog = f"{before}{SECTION}\n## [{version}] - {date}\n{entries}"
    citation = re.sub(r"^(version|date-released): .*\n", "", citation, flags=re.M)
    dated = f"version: {version}\ndate-released: {date}\n"
    citation = re.sub(r"^(license: )", rf"{dated}\1", citation, count=1, flags=re.M)
    return changelog, citation, re.sub(r'^__version__ = ".*"$', f'__version__ = "{version}"', sources, flags=re.M)


def main(version: str) -> int:
    """Write the files, unless they would contradict the version."""
    new = name_version(*read_files(), version, datetime.now(UTC).date().isoformat())
    faults = find_faults(f"v{version}", *new)
    if faults:
        print("\n".join(faults))
        return 1
    for name, text in zip(FILES, new, strict=True):
        (ROOT / name).write_text(text, encoding="utf-8")
    print(f"Sources, changelog and citation are those of {version}. Look at git diff, commit, then:")
    print(f'git tag -a v{version} -m "superarm {version}"')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

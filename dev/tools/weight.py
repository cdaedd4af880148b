"""Print code lines and files of each package beside its budget in dev/weight.toml; fail more than 3 % above it.

    python -m dev.tools.weight          the table
    python -m dev.tools.weight FILE …   code lines of these files

A code line is one that is neither blank nor a comment nor part of a docstring.
"""

import ast
import io
import sys
import tokenize
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLACK = 1.03  # so that ten good lines need no change of a budget
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(path: Path) -> int:
    """How many lines of a Python file hold code."""
    source = path.read_text()
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            held |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            held -= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    return len(held)


def measure(folder: Path, apart: list[Path]) -> tuple[int, int]:
    """Code lines and files below ``folder``, without what is in one of ``apart``."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    kept = [path for path in files if not any(other in path.parents or other == path for other in apart)]
    return sum(code_lines(path) for path in kept), len(kept)


def main() -> None:
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            print(f"{code_lines(Path(name)):6}  {name}")
        return
    budgets = tomllib.loads((ROOT / "dev/weight.toml").read_text())
    folders = {name: ROOT / name for name in budgets}
    over = False
    print(f"{'package':<28} {'code':>7} {'budget':>7}   {'files':>5} {'budget':>6}")
    for name, budget in budgets.items():
        apart = [other for other in folders.values() if other != folders[name] and folders[name] in other.parents]
        code, files = measure(folders[name], apart)
        heavy = code > SLACK * budget["code"] or files > SLACK * budget["files"]
        over |= heavy
        mark = "  more than 3 % above its budget" if heavy else ""
        print(f"{name:<28} {code:>7,} {budget['code']:>7,}   {files:>5} {budget['files']:>6}{mark}")
    if over:
        sys.exit("Make it lighter; or raise the budget, in a commit of its own that says what users get for it.")


if __name__ == "__main__":
    main()

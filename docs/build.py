#!/usr/bin/env python3
"""make docs: writes the reference pages that follow from the tables in src/ (operators, passes, diagnostics, processor
levels) and copies the written pages beside them; checks that relative links in all pages lead somewhere.

  docs/build.py FOLDER
"""
import glob
import os
import re
import shutil
import sys

# table, row macro, page, title, [(column, index of the macro's argument)]
TABLES = [
    ("src/op/ops.def", "OP", "operators.md", "Operators",
     [("operator", 1), ("arguments", (2, 3)), ("attributes", 5), ("what it computes", 7)]),
    ("src/pass/passes.def", "PASS", "passes.md", "Passes", [("pass", 1), ("options", 5), ("what it does", 6)]),
    ("src/core/errors.def", "RX", "diagnostics.md", "Diagnostics", [("id", 0), ("status", 2), ("meaning", 3)]),
    ("src/core/targets.def", "RX_FEATURE", "features.md", "Processor features", [("feature", 0), ("processor", 1)]),
    ("src/core/targets.def", "RX_LEVEL", "levels.md", "Processor levels", [("level", 0), ("processor", 1)]),
]


def split_args(text):
    """the arguments of a macro call, text begins behind its parenthesis; None without an end"""
    args, depth, start, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        if c == '"':
            i = re.compile(r'"(?:\\.|[^"\\])*"').match(text, i).end() - 1
        elif c == "(":
            depth += 1
        elif c in ",)" and depth == 0:
            args.append(text[start:i].strip())
            start = i + 1
            if c == ")":
                return args
        elif c == ")":
            depth -= 1
        i += 1
    return None


def plain(arg):
    strings = re.findall(r'"((?:\\.|[^"\\])*)"', arg)
    return "".join(strings).replace('\\"', '"') if strings else arg


def rows_of(path, macro):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for m in re.finditer(rf"^{macro}\(", text, re.M):
        args = split_args(text[m.end():])
        if args:
            yield [plain(a) for a in args]


def cell(row, index, title):
    if isinstance(index, tuple):
        low, high = (row[i] for i in index)
        text = low if low == high else f"{low} or more" if high == "-1" else f"{low} to {high}"
    else:
        text = ("RX" if title == "id" else "") + row[index]
    return text.replace("|", "\\|")


def write_table(folder, path, macro, page, title, columns):
    rows = list(rows_of(path, macro))
    with open(os.path.join(folder, page), "w", encoding="utf-8") as f:
        f.write(f"# {title}\n\nWritten by `make docs` from `{path}`.\n\n")
        f.write("| " + " | ".join(c for c, _ in columns) + " |\n|" + "---|" * len(columns) + "\n")
        for row in rows:
            f.write("| " + " | ".join(cell(row, i, c) for c, i in columns) + " |\n")
    return len(rows)


def broken_links(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"```.*?```", "", f.read(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target) and not os.path.exists(os.path.join(os.path.dirname(path), target)):
            yield target


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for path, *rest in TABLES:
        if os.path.exists(path):
            print(f"{os.path.join(folder, rest[1])}: {write_table(folder, path, *rest)} rows")
    bad = 0
    for page in sorted(glob.glob("docs/*.md")) + [p for p in ("README.md",) if os.path.exists(p)]:
        for target in broken_links(page):
            bad += 1
            print(f"{page}: the link to {target} leads nowhere", file=sys.stderr)
        if page.startswith("docs"):
            shutil.copy(page, folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

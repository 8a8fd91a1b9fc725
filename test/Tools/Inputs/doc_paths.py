"""Every path that a document names, in a link or as code, is there. doc_paths.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folders = {path.name for path in root.iterdir() if path.is_dir()} - {"build"}
missing, seen = [], 0
for page in [*root.glob("*.md"), *(root / "docs").glob("*.md")]:
    text = page.read_text(encoding="utf-8")
    paths = [(root, name) for name in re.findall(r"`([\w./-]+)`", text)
             if name.split("/")[0] in folders and "/" in name]
    paths += [(page.parent, name) for name in re.findall(r"\]\(([\w./-]+)", text) if not name.startswith("http")]
    for base, name in paths:
        seen += 1
        # The guide to families calls the new one so.
        if not re.search("NewFamily|new_family", name) and not (base / name).exists():
            missing.append(f"{page.name}: {name}")
print(f"{seen} paths")
if missing:
    sys.exit("error: not there: " + ", ".join(missing))

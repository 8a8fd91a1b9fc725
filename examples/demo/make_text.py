#!/usr/bin/env python3
"""Writes the demo's text: chapters of the King James Version as paragraphs.

The text is in the public domain (the translation is of 1611). It is read with
`bible` from Debian's packages bible-kjv and bible-kjv-text:

    apt-get install bible-kjv bible-kjv-text && examples/demo/make_text.py kjv.txt
"""
import re
import subprocess
import sys
import textwrap

LAST_BOOK = "2sa24:25"  # Genesis to 2 Samuel: 1.2 MB


def main():
    verses = subprocess.run(["bible", "-f", "gen1:1-" + LAST_BOOK], check=True,
                            capture_output=True, text=True).stdout
    chapters = []
    for line in verses.splitlines():
        reference, _, text = line.partition(" ")
        chapter = re.match(r"(.*?):\d+$", reference)
        if not chapter:
            sys.exit(f"error: expected 'Ge1:1 text', found: {line[:60]!r}")
        if not chapters or chapters[-1][0] != chapter[1]:
            chapters.append((chapter[1], []))
        chapters[-1][1].append(text.strip())
    with open(sys.argv[1], "w") as out:
        for _, lines in chapters:
            out.write(textwrap.fill(" ".join(lines), 78) + "\n\n")


if __name__ == "__main__":
    main()

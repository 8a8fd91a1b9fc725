"""all_options.py BASH ZSH OPT RUN: every name of the lists OPT and RUN is in its program's part of both."""
import re
import sys

bash, zsh, *lists = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
for program, names in zip(("opt", "run"), lists):
    for text in (bash, zsh):
        part = re.search(rf"^_gtp_{program}\(\).*?^\}}", text, re.S | re.M).group()
        missing = [n for n in names.split() if not re.search(rf"[ '\"]--?{re.escape(n)}[= '\"]", part)]
        if missing:
            sys.exit(f"error: gtp-{program} lacks {missing}")

"""A shell script that compiles what a refusal says: what fits, and what is just too much.

advice.py REFUSAL STEP; the script takes the command to which it adds options.
"""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
change, low = re.search(r"smallest change that fits: (.*?): .*; gtp=(\d+) needs", text).groups()
less = re.sub(r"gtp=\d+", f"gtp={low}", change)
degree, step = int(re.search(r"gtp=(\d+)", change).group(1)), int(sys.argv[2])
if degree != int(low) + step:
    sys.exit(f"error: {change} is not {step} above gtp={low}")
print(f'"$@" {change}')
print(f'if "$@" {less} 2>/dev/null; then exit 1; fi')

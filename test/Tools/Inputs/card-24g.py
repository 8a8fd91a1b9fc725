"""Writes a target: the built-in h100's profile with 24 GiB of memory. card-24g.py PROFILE OUT"""
import json
import sys

profile = json.load(open(sys.argv[1], encoding="utf-8"))
profile["name"] = "card-24g"
profile["memory"]["bytes"] = 24 << 30
json.dump(profile, open(sys.argv[2], "w", encoding="utf-8"), indent=2)

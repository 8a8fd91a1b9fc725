"""Writes a target: a profile with one link of each collective. links.py PROFILE OUT GATHER REDUCE_SCATTER ALL_REDUCE"""
import json
import sys

profile = json.load(open(sys.argv[1], encoding="utf-8"))
keep = dict(zip(("all_gather", "reduce_scatter", "all_reduce"), sys.argv[3:]))
network = profile["network"]
network["ranks_per_link_domain"] = 0
network["links"] = [link for link in network["links"]
                    if keep.get(link["collective"], link["transport"]) == link["transport"]]
json.dump(profile, open(sys.argv[2], "w", encoding="utf-8"), indent=2)

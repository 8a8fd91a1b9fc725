#!/usr/bin/env python3
"""Prints shell completion for gtp-opt and gtp-run, made from what their --help says.

    source <(scripts/make-completion.py --bin=build/release/bin)                # bash
    source <(scripts/make-completion.py --bin=build/release/bin --shell=zsh)    # zsh, after compinit
"""
import argparse
import pathlib
import re
import subprocess

# Options at the start of a line of --help. LLVM writes `--name=<value>`, passes indented by six blanks
# and their own options, which are none of the command line, by eight; CLI11 writes `--name VALUE`.
LLVM = re.compile(r"^ {2,6}(?:-\w, )?(--?[A-Za-z][\w.-]*)(?:\[?=<([^>]*)>\]?)?(?= )", re.M)
CLI11 = re.compile(r"^ {2}(?:-\w,)?(--[A-Za-z][\w-]*)(?: (\S+))?", re.M)


def options(program):
    """{name: choices}; a name that takes a value ends in '='."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, value in (CLI11 if program.name == "gtp-run" else LLVM).findall(text):
        # "auto|cuda|host=auto" has the default behind it.
        choices = re.sub(r"=.*", "", value).split("|") if "|" in value else []
        found[name + ("=" if value else "")] = [c for c in choices if re.fullmatch(r"[a-z0-9][a-z0-9-]*", c)]
    return found


BASH = """_{function}() {{
  local word=$2 name
  # Bash cuts words at '='; what was typed before it is the word before.
  if [[ $word == = ]]; then name=$3 word=; elif [[ $3 == = ]]; then name=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [[ -n $name ]]; then
    case $name in
{cases}
      *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "{words}" -- "$word"))
    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _{function} {program}
"""

ZSH = """_{function}() {{
  _arguments -S \\
{specs}
    '*:file:_files'
}}
compdef _{function} {program}
"""


def bash(program, found):
    cases = "\n".join(f'      {name[:-1]}) COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word")) ;;'
                      for name, choices in found.items() if choices)
    return BASH.format(function=program.replace("-", "_"), program=program,
                       cases=cases or "      '') ;;", words=" ".join(found))


def zsh(program, found):
    def spec(name, choices):
        if not name.endswith("="):
            return f"    '{name}' \\"
        action = f"({' '.join(choices)})" if choices else "_files"
        return f"    '{name[:-1]}=-:value:{action}' \\"

    return ZSH.format(function=program.replace("-", "_"), program=program,
                      specs="\n".join(spec(*item) for item in found.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="directory of gtp-opt and gtp-run")
    parser.add_argument("--shell", choices=["bash", "zsh"], default="bash")
    arguments = parser.parse_args()
    for program in ("gtp-opt", "gtp-run"):
        found = options(arguments.bin / program)
        print((bash if arguments.shell == "bash" else zsh)(program, found))


if __name__ == "__main__":
    main()

"""Options of scripts: errors are one sentence and exit code 1, as those of gtp-opt and gtp-run."""
import argparse
import sys


class Parser(argparse.ArgumentParser):
    """Says what was wrong without its usage, which --help prints."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        sys.exit(f"{self.prog}: error: {message}; --help lists the options")


def number(least, kind=int):
    """Type of an option: a number from `least` on."""
    expected = ("a whole number" if kind is int else "a number") + f" from {least} on"

    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        # Neither does "nan" compare.
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f"found '{text}', expected {expected}")
        return value
    return read


def some(item):
    """Type of an option: items between commas, each of the type `item`."""
    return lambda text: [item(part) for part in text.split(",")]


def one_of(*names):
    """Type of an option: one of the names."""
    def read(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"found '{text}', expected {' or '.join(names)}")
        return text
    return read

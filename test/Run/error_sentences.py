#!/usr/bin/env python3
"""Every error that a user can meet has a test that shows its sentence.

Reads the sources: each call that makes an error gives a site, the literals of its
message the sentence, with holes ("…") where values go. A site is shown when a test
holds its words. What no input can reach, and what has no test yet, is in
Inputs/errors_without_a_test.txt, with the reason. A new sentence without a test fails
here, as does an entry of that file that is shown or gone.

  error_sentences.py            the verdict
  error_sentences.py --list     every sentence and the tests that show it
  error_sentences.py --missing  sentences without a test, as lines of the file
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["lib", "dialects", "runtime", "tools"]
TABLE = ROOT / "test/Run/Inputs/errors_without_a_test.txt"
MAKERS = re.compile(
    r"(?<![A-Za-z_])(?:emitError|emitOpError|usageError|reportError|createStringError|Error|error"
    r"|fail|failAt|refuse[A-Za-z]*|badValue)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Fewer characters than this say nothing by themselves.
ENOUGH = 9
# As many of a sentence's first or last characters tell it from others.
END = 20


def strip_comments(text):
    """Comments and character literals out, strings left."""
    pattern = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*.*?\*/'
    keep = lambda m: m[0] if m[0][0] == '"' else " "
    return re.sub(pattern, keep, text, flags=re.S)


def unescape(literal):
    return (literal.replace('\\"', '"').replace("\\n", " ").replace("\\xC3\\x97", "×")
            .replace("\\\\", "\\"))


def statement(text, start):
    """From a call to the end of its statement, or of the argument that it is."""
    depth, at = 0, start
    while at < len(text):
        c = text[at]
        if c == '"':
            at = LITERAL.match(text, at).end()
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif c in ";" and depth == 0:
            break
        at += 1
    return text[start:at]


def sentences(path):
    """(line, sentence) of each error that a source makes."""
    text = strip_comments(path.read_text())
    done = 0
    for found in MAKERS.finditer(text):
        if found.start() < done:
            continue  # a part of the error before
        call = statement(text, found.end() - 1)
        # A lambda or a function body is no message.
        if "{" in call and re.search(r"\)\s*(const\s*)?(->\s*\w+\s*)?\{", call):
            continue
        pieces = []
        joined = re.sub(r'"\s*(<<\s*)?"', "", re.sub(r'"\s*"', "", call))
        for literal in LITERAL.finditer(joined):
            pieces.append(unescape(literal[1]))
        # The checker's findings start with the name of a rule.
        if re.match(r"fail(At)?\s*\($", found[0]) and re.fullmatch("[a-z-]+", pieces[0] if pieces else ""):
            pieces.pop(0)
        pieces = [p for p in pieces if p.strip()]
        if not pieces:
            continue
        done = found.start() + len(call)
        yield text.count("\n", 0, found.start()) + 1, "…".join(pieces)


def squeeze(text):
    return re.sub(r"\s+", " ", text)


def corpus():
    """The words of each test, adjacent literals joined."""
    for path in sorted((ROOT / "test").rglob("*")):
        if path.suffix not in (".cpp", ".h", ".mlir", ".test", ".py", ".sh"):
            continue
        if path == pathlib.Path(__file__).resolve() or "fuzz" in path.relative_to(ROOT).parts:
            continue
        text = path.read_text()
        if path.suffix in (".cpp", ".h", ".py"):
            text = re.sub(r'(?<!\\)"\s*\n\s*[rf]?"', "", text)
            text = text.replace('\\"', '"').replace("\\xC3\\x97", "×")
        yield path.relative_to(ROOT).as_posix(), squeeze(text)


def keys(sentence):
    """The pieces that a test must hold one of, longest first: what a reader would know
    the sentence by."""
    pieces = [squeeze(piece).strip() for piece in sentence.split("…")]
    pieces = sorted({p for p in pieces if p}, key=lambda p: (len(p), p), reverse=True)
    long = [p for p in pieces if len(p) >= ENOUGH]
    return (long or pieces)[:2]


def shows(sentence, text):
    for key in keys(sentence):
        if key in text:
            return True
        # Tests may show one end of a long sentence.
        if len(key) > END and (key[:END] in text or key[-END:] in text):
            return True
    return False


def without_a_test():
    """{(file, sentence): reason}"""
    entries, reason = {}, None
    for line in TABLE.read_text().splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line.strip():
            file, _, sentence = line.partition(": ")
            entries[(file, sentence)] = reason
    return entries


def main():
    tests = list(corpus())
    table, used = without_a_test(), set()
    missing, superfluous, count = [], [], 0
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h"):
                continue
            file = path.relative_to(ROOT).as_posix()
            for line, sentence in sentences(path):
                count += 1
                where = [name for name, text in tests if shows(sentence, text)]
                entry = (file, sentence)
                if entry in table:
                    used.add(entry)
                    if where:
                        superfluous.append((file, sentence, where[0]))
                elif not where:
                    missing.append((file, line, sentence))
                if "--list" in sys.argv:
                    print(f"{file}:{line}: {sentence}\n    "
                          + (", ".join(where) or table.get(entry) or "no test"))
    if "--missing" in sys.argv:
        for file, _, sentence in missing:
            print(f"{file}: {sentence}")
        return 0
    for file, line, sentence in missing:
        print(f"error: {file}:{line}: no test shows this sentence, and {TABLE.name} does not "
              f"say why: {sentence}")
    for file, sentence, test in superfluous:
        print(f"error: {TABLE.name}: {test} shows it, so it can be reached: {file}: {sentence}")
    stale = [entry for entry in table if entry not in used]
    for file, sentence in stale:
        print(f"error: {TABLE.name}: no source says this any more: {file}: {sentence}")
    bad = len(missing) + len(superfluous) + len(stale)
    later = sum(table[entry].startswith("No test yet") for entry in used)
    print(f"{count} sentences; of those without a test {len(used) - later} can be reached by no "
          f"input, {later} have none yet, {len(missing)} are new")
    print(f"{count - len(missing)} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

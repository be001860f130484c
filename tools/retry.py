"""Decides which failed tests tools/test runs once more, alone, after the others.

A test may be retried only if its source has a marker line with what the test waits for:

    # waits: processes                 in a script; also networks, guests, browsers, kubernetes, separated by commas
    /* waits: processes */             in a C program

A failure is never retried if it shows a defect that a second run could hide: a crash, a sanitizer report, a broken
invariant, a checksum, a replay, a permission, a hostile test, a seed, a property test. The tables below name them. To
protect another kind of test, add a row.

A test that failed and then passed alone is `unstable`. tests/unstable lists these; a test that is listed twice is not
retried until it is repaired and its lines are removed.
"""
import os
import re

UNSTABLE_MAX = 3  # in a whole run; with more the run fails
LISTED_MAX = 2  # lines in tests/unstable after which a test is no longer retried
WAITS = ("processes", "networks", "guests", "browsers", "kubernetes")
MARKER = r"^(?:#|/?\*+)\s*{}: (.+?)\s*(?:\*/)?$"
MARKER_LINES = 40  # the marker is in the head of a file
PASSED = re.compile(r"^(?:# )*ok\b")
CASE_FAILED = re.compile(r"^(?:# )*not ok\b")

# Names of tests, and of failed cases.
NEVER_NAMES = (
    (r"hostile|attack", "a hostile test"),
    (r"permission|rbac|role", "a test of permissions"),
    (r"propert|random|optimum|days_|_days|seed", "a property test or a fixed seed"),
    (r"journal|replay|checksum", "a test of replays or checksums"),
    (r"crash|invariant|plants|sim/cluster", "a test of invariants"),
    (r"compilers", "a comparison of compilers"),
)
# Words in the output without passed cases.
NEVER_WORDS = (
    (r"(Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer|\bruntime error:", "a sanitizer report"),
    (r"ERROR SUMMARY: [1-9]|\bInvalid (read|write) of size", "a report of valgrind"),
    (r"\bAssertion\b.*\bfailed\b|assertion failed|stack smashing|buffer overflow detected|double free|corrupted|"
     r"munmap_chunk|\bfree\(\): |\bmalloc\(\): |Segmentation fault|\bAborted\b|[Cc]ore dumped|"
     r"SIG(SEGV|ABRT|BUS|ILL|FPE)\b|"
     r"(status|code|ended with|returncode)\W{0,3}(-(4|6|7|8|11)|132|134|135|136|139)\b", "a crash"),
    (r"\b[Ii]nvariant\b|\bbreach(es)?\b|\bbroke invariant", "a broken invariant"),
    (r"\b[Cc]hecksums?\b", "a checksum"),
    (r"\b[Rr]eplay(s|ed)?\b.*\bdiffer|\bdiffers? from the replay", "a replay"),
    (r"\bseed[ =:]+\d+", "a fixed seed"),
)
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")


def source_of(test):
    """Returns the source file of a test, or None."""
    last = test["cmd"][-1]
    if test["name"].endswith(".sh") or last.endswith(".sh"):
        return last
    tree = test.get("env", {}).get("BERTH_SOURCE", "")
    for path in (os.path.join(tree, "src", test["name"] + ".c"), os.path.join(tree, test["name"] + ".c")):
        if os.path.exists(path):
            return path
    return None


def marker(test, name):
    """Returns the text after `NAME: ` in the head of a test's source; empty if there is no such line."""
    path = source_of(test)
    if not path or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        head = "".join(line for _, line in zip(range(MARKER_LINES), f))
    found = re.search(MARKER.format(name), head.replace("\n * ", "\n* "), re.MULTILINE)
    return found[1] if found else ""


def waits_for(test):
    """Returns the words of a test's `waits` marker; empty if it has none. An unknown word is an error."""
    words = [word.strip() for word in marker(test, "waits").split(",") if word.strip()]
    for word in words:
        if word not in WAITS:
            raise ValueError(f"{source_of(test)}: `waits: {word}` is not one of {', '.join(WAITS)}")
    return words


def listed(tree):
    """Returns how often each test is listed in tests/unstable."""
    counts = {}
    path = os.path.join(tree, "tests/unstable")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                words = line.split("#")[0].split()
                if len(words) >= 2:
                    counts[words[1]] = counts.get(words[1], 0) + 1
    return counts


def first_match(table, text):
    return next((why for pattern, why in table if re.search(pattern, text)), "")


def refusal(test, output, trouble, sightings):
    """Returns why a failed test is not retried; empty if it is."""
    if not waits_for(test):
        return "it waits for nothing outside itself"
    if why := first_match(NEVER_NAMES, test["name"]):
        return why
    lines = [line for line in output.splitlines() if not PASSED.match(line)]
    for line in lines:
        if CASE_FAILED.match(line) and (why := first_match(NEVER_NAMES, line)):
            return why
    if any(word in trouble for word in CRASHES):
        return "a crash"
    if why := first_match(NEVER_WORDS, "\n".join([*lines, trouble])):
        return why
    if sightings.get(test["name"], 0) >= LISTED_MAX:
        return f"it is in tests/unstable {sightings[test['name']]} times: repair it and remove its lines"
    return ""

"""Names of renders: any id or title -> a name that Kubernetes takes. Distinct ones stay distinct, every time.

What is a name already stays as it is. Anything else is spelt in a-z, 0-9 and `-`, and gets six hex digits of its own
hash, because `job_A` and `job_a` are two jobs.
"""

import hashlib
import re
import unicodedata
from typing import Final

# 253 is Kubernetes' limit; this leaves room for a batch before it in the idempotency key, and for `-r12` after it.
LONGEST_NAME: Final = 180
LONGEST_SOURCE: Final = 170
HASH_DIGITS: Final = 6
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_JOB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_RETRY: Final = re.compile(r"(?P<stem>.+)-r(?P<number>[1-9][0-9]{0,3})")


def object_name(source: str) -> str:
    """A DNS subdomain of at most LONGEST_NAME characters. `source` is not longer than LONGEST_SOURCE."""
    if _SUBDOMAIN.fullmatch(source):
        return source
    digest = hashlib.sha256(source.encode()).hexdigest()[:HASH_DIGITS]
    plain = unicodedata.normalize("NFKD", source.casefold()).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^a-z0-9]+", "-", plain)[: LONGEST_NAME - HASH_DIGITS - 1].strip("-")
    return f"{stem or 'render'}-{digest}"


def is_object_name(text: str) -> bool:
    """Whether Kubernetes takes it as it is."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def row_name(batch: str, row: int) -> str:
    """The name of a row that has none. Four digits from the start, so that a longer file does not rename its rows."""
    return object_name(f"{batch}-{row:04}")


def retry_name(name: str) -> str:
    """intro -> intro-r2 -> intro-r3."""
    found = _RETRY.fullmatch(name)
    return f"{found['stem']}-r{int(found['number']) + 1}" if found else f"{name}-r2"


def what_is_wrong_with_name(source: str) -> str:
    """Why a title cannot become a name; empty if it can."""
    if len(source) > LONGEST_SOURCE:
        return f"the name has {len(source)} characters; at most {LONGEST_SOURCE} are possible"
    if "/" in source or "\\" in source:
        return "the name holds a slash; it becomes a file name later, so leave folders out"
    if not source.isprintable():
        return "the name holds a line break or another control character"
    if not any(char.isalnum() for char in source):
        return "the name holds no letter and no digit"
    return ""


def what_is_wrong_with_job_id(job: str) -> str:
    """Why Sume cannot have given out this id; empty if it can."""
    if _JOB_ID.fullmatch(job):
        return ""
    if len(job) > 128:
        return f"the job id has {len(job)} characters; Sume's have at most 128"
    return "this is no job id: letters, digits, - and _ only, such as job_0b6f7c1e-5d0a"


def what_is_wrong_with_batch(batch: str) -> str:
    """Why it cannot be a label; empty if it can."""
    if _LABEL_VALUE.fullmatch(batch):
        return ""
    return "it becomes a label: at most 63 letters, digits, -, _ and ., with a letter or a digit at both ends"

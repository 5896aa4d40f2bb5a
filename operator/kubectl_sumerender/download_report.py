"""What is seen of a download: bars on a terminal, a line for each file elsewhere, and what is missing at the end."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kubectl_sumerender import screen
from kubectl_sumerender.download_plan import Lacking, Wanted
from kubectl_sumerender.downloader import Listener, Outcome

if TYPE_CHECKING:
    from rich.progress import Progress


class Report:
    """Counts outcomes, and shows them. Told from several threads."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self.total = total
        self.outcomes: list[Outcome] = []
        self._quiet = quiet
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._all: Any = None
        self._bars: dict[str, Any] = {}

    @contextmanager
    def shown(self) -> Iterator[Listener]:
        """For as long as the download lasts."""
        listener = Listener(begins=self._begins, grew=self._grew, ended=self._ended)
        if self._quiet or not screen.is_terminal() or not self.total:
            yield listener
            return
        self._progress = _progress()
        self._all = self._progress.add_task("all files", total=self.total, unit="files")
        with self._progress:
            yield listener

    def _begins(self, wanted: Wanted) -> None:
        if self._progress is not None:
            size_bytes = wanted.output.size_bytes
            bar = self._progress.add_task(wanted.file, total=size_bytes, unit="bytes")
            with self._lock:
                self._bars[wanted.file] = bar

    def _grew(self, wanted: Wanted, size_bytes: int, total_bytes: int | None) -> None:
        if self._progress is not None:
            self._progress.update(self._bars[wanted.file], completed=size_bytes, total=total_bytes)

    def _ended(self, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)
            if self._progress is not None:
                self._progress.remove_task(self._bars.pop(outcome.wanted.file))
                self._progress.advance(self._all)
                if outcome.why:
                    self._progress.console.print(line_of(outcome), markup=False)
            elif not self._quiet:
                screen.say(line_of(outcome))


def line_of(outcome: Outcome) -> str:
    """One file in one line."""
    if outcome.why:
        return f"missing     {outcome.wanted.file}: {outcome.why}"
    what = "was there" if outcome.was_there else "downloaded"
    return f"{what:<10}  {outcome.wanted.file}  {size(outcome.size_bytes)}"


def lacking_of(outcomes: Sequence[Outcome]) -> list[Lacking]:
    """What is not there, by render."""
    return [
        Lacking(ref=f"{each.wanted.output.key.namespace}/{each.wanted.output.key.name}", why=each.why)
        for each in outcomes
        if each.why
    ]


def summary(outcomes: Sequence[Outcome], lacking: Sequence[Lacking]) -> list[str]:
    """The last lines: the sum, and everything that is missing, with its reason."""
    new = [each for each in outcomes if not each.why and not each.was_there]
    old = [each for each in outcomes if each.was_there]
    there = f", {len(old)} were there already" if old else ""
    lines = [f"{len(new)} downloaded ({size(sum(each.size_bytes for each in new))}){there}, {len(lacking)} missing"]
    return lines + [f"  {each.ref}: {each.why}" for each in sorted(lacking, key=lambda each: each.ref)]


def as_json(outcomes: Sequence[Outcome], lacking: Sequence[Lacking]) -> dict[str, Any]:
    """The same for scripts."""
    there = sorted((each for each in outcomes if not each.why), key=lambda each: each.wanted.file)
    return {
        "files": [
            {
                "namespace": each.wanted.output.key.namespace,
                "name": each.wanted.output.key.name,
                "file": each.wanted.file,
                "sizeBytes": each.size_bytes,
                "downloaded": not each.was_there,
            }
            for each in there
        ],
        "missing": [{"render": each.ref, "why": each.why} for each in sorted(lacking, key=lambda each: each.ref)],
    }


def size(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def _progress() -> "Progress":
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Amount(ProgressColumn):
        """Files are counted, bytes are measured."""

        def render(self, task: Task) -> Text:
            if task.fields["unit"] == "files":
                return Text(f"{task.completed:.0f}/{task.total or 0:.0f}")
            done = size(int(task.completed))
            return Text(f"{done} of {size(int(task.total))}" if task.total else done)

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Amount(),
        console=screen.console(),
        transient=True,
    )

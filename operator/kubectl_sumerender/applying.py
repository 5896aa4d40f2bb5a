"""Making the objects of an import: all of them are tried first (a dry run on the server), then made, several at once.

An object of that name that is the same counts as made: an import that broke off is finished by doing it again. One that
differs stops the import before anything is made.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kubectl_sumerender import renders, screen
from kubectl_sumerender.api import Api
from kubectl_sumerender.connection import CONNECTIONS
from kubectl_sumerender.errors import ApiError, ExistsError, NotFoundError, RefusedError, UnavailableError
from kubectl_sumerender.manifests import difference

Body = Mapping[str, Any]

TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.5
WORTH_A_LIST: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An object that the server will not have as it is; `place` among those that were handed in."""

    place: int
    text: str


class BrokenOffError(Exception):
    """The making stopped half way: `made` objects are there."""

    def __init__(self, made: int, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.made = made
        self.cause = cause


def check_all(api: Api, namespace: str, bodies: Sequence[Body]) -> tuple[list[int], list[Fault]]:
    """Which of them have to be made, by place, and which the server refuses. Nothing is made."""
    missing: list[int] = []
    faults: list[Fault] = []
    there = _there(api, namespace, bodies)
    unknown = [place for place in range(len(bodies)) if place not in there]
    faults += [Fault(place=place, text=text) for place, text in there.items() if text]

    def check(body: Body) -> str | None:
        return _try(api, namespace, body, dry_run=True)

    with screen.progress("checking", len(unknown)) as advance:
        for number, outcome in _each(check, [bodies[place] for place in unknown]):
            advance()
            place = unknown[number]
            if isinstance(outcome, RefusedError):
                faults.append(Fault(place=place, text=str(outcome)))
            elif isinstance(outcome, ApiError):
                raise outcome  # no rights, no namespace, no answer: that is not the file's fault
            elif outcome is None:
                missing.append(place)
            elif outcome:
                faults.append(Fault(place=place, text=outcome))
    return sorted(missing), sorted(faults, key=lambda fault: fault.place)


def _there(api: Api, namespace: str, bodies: Sequence[Body]) -> dict[int, str]:
    """Place -> how the object of that name differs, empty if it is the same. For many: one list instead of a call each.

    Whatever is not in it is asked about singly, so a list that is a moment old does no harm.
    """
    if len(bodies) < WORTH_A_LIST:
        return {}
    places = {body["metadata"]["name"]: place for place, body in enumerate(bodies)}
    found: dict[int, str] = {}
    for page in renders.pages(api):
        for body in page.bodies:
            place = places.get(body["metadata"]["name"])
            if place is not None:
                found[place] = _taken(namespace, body, bodies[place])
    return found


def make_all(api: Api, namespace: str, bodies: Sequence[Body]) -> int:
    """Make them, roughly in their order (the older one is asked for first). BrokenOffError if it had to stop."""
    made = 0

    def make(body: Body) -> str | None:
        return _try(api, namespace, body, dry_run=False)

    with screen.progress("making", len(bodies)) as advance:
        try:
            for _, outcome in _each(make, bodies):
                if isinstance(outcome, ApiError):
                    raise outcome
                if outcome:
                    raise ExistsError(outcome)
                made += 1
                advance()
        except (ApiError, KeyboardInterrupt) as error:
            raise BrokenOffError(made, error) from None
    return made


def _try(api: Api, namespace: str, body: Body, *, dry_run: bool) -> str | None:
    """None: made, or could be. Else: how the one that is there differs; empty if it does not."""
    for number in range(TRIES):
        try:
            renders.create(api, namespace, body, dry_run=dry_run)
        except ExistsError:
            try:
                return _compare(api, namespace, body)
            except NotFoundError:
                continue  # deleted in between
        except UnavailableError:
            if number == TRIES - 1:
                raise
            time.sleep(FIRST_PAUSE_S * 2**number)
        else:
            return None
    raise UnavailableError(f"create render {namespace}/{body['metadata']['name']}: it comes and goes; try again")


def _compare(api: Api, namespace: str, body: Body) -> str:
    return _taken(namespace, renders.get(api, namespace, body["metadata"]["name"]), body)


def _taken(namespace: str, there: Body, wanted: Body) -> str:
    """What to say of an object that is there already; empty if it is the wanted one."""
    found = difference(there, wanted)
    if not found:
        return ""
    return (
        f"there is a render {namespace}/{wanted['metadata']['name']} already, and it {found}; a render cannot change: "
        "give the row another name, take another --batch, or delete the old render"
    )


_Outcome = tuple[int, "str | ApiError | None"]


def _each(work: Callable[[Body], str | None], bodies: Iterable[Body]) -> Iterator[_Outcome]:
    """(place, outcome) of each as it is done, several at once, begun in their order."""
    with _pool() as pool:
        todo = enumerate(bodies)
        running: dict[Future[str | None], int] = {}
        while True:
            for place, body in islice(todo, CONNECTIONS - len(running)):
                running[pool.submit(work, body)] = place
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                place = running.pop(future)
                try:
                    yield place, future.result()
                except ApiError as error:
                    yield place, error


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """A pool that begins nothing more once its user has left, on Ctrl-C too."""
    pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="apply")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)

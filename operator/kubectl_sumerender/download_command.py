"""`download`: the outputs of renders as files in a folder."""

import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from kubectl_sumerender import screen
from kubectl_sumerender.choosing import Choice, choice_options
from kubectl_sumerender.connection import Connection, connection_options
from kubectl_sumerender.errors import NOTHING_MATCHED, OK, SOME_DID_NOT, NotFoundError, WrongUseError

if TYPE_CHECKING:
    from kubectl_sumerender.api import Api
    from kubectl_sumerender.download_plan import Lacking, Output


@click.command()
@choice_options()
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path), help="Folder; made if need be.")
@click.option("--parallel", default=4, show_default=True, type=click.IntRange(1, 32), help="Files at once.")
@click.option(
    "--refresh-timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long the operator is waited for when an address has expired.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: one document at the end."
)
@connection_options
def download(
    connection: Connection,
    choice: Choice,
    folder: Path,
    parallel: int,
    refresh_timeout: float,
    output: str,
) -> int:
    """Download what renders made: NAME.EXT, or NAME-1.EXT and so on where one made several.

    What is there already is not fetched again, and what broke off is gone on with, so the same command may be
    interrupted and repeated. index.json says which file came from which job. With -A each namespace gets a folder.

    Exit code: 0 everything is there, 1 something is missing (it says what, and why), 2 wrong use, 3 nothing matched.

    \b
    Example:
      kubectl sumerender download -l render.sume.com/batch=july --to july/
      kubectl sumerender download intro outro --to .
    """
    from kubectl_sumerender import download_index, download_plan, download_report
    from kubectl_sumerender.downloader import Downloader, disk_error
    from kubectl_sumerender.folder_lock import only_one
    from kubectl_sumerender.fresh_addresses import FreshAddresses

    if choice.is_empty:
        raise WrongUseError("which renders? Give names or -l SELECTOR; for all that succeeded, --state Completed")
    api = connection.open()
    outputs, lacking = _found(api, choice)
    if not outputs and not any(each.why != NO_SUCH for each in lacking):
        screen.tell(f"nothing matched {choice.in_words()} in {api.where}")
        return NOTHING_MATCHED
    stop = threading.Event()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(folder):
            index = download_index.load(folder)
            wanted = download_plan.named(outputs, index.entries, by_namespace=connection.all_namespaces)
            report = download_report.Report(len(wanted), quiet=output == "json")
            fresh = FreshAddresses(api, wait_s=refresh_timeout, stop=stop)
            with report.shown() as listener:
                Downloader(folder, index, fresh, listener, stop).run(wanted, parallel)
    except OSError as error:
        raise disk_error(error, folder) from None
    lacking += download_report.lacking_of(report.outcomes)
    if output == "json":
        screen.say_json(download_report.as_json(report.outcomes, lacking))
    else:
        for line in download_report.summary(report.outcomes, lacking):
            screen.say(line)
    return SOME_DID_NOT if lacking else OK


NO_SUCH = "there is no such render"


def _found(api: "Api", choice: Choice) -> tuple[list["Output"], list["Lacking"]]:
    """What the chosen renders have to offer; object by object, for only little of each is kept."""
    from kubectl_sumerender.download_plan import Lacking, outputs_of
    from kubectl_sumerender.render import read_render

    outputs: dict[str, list[Output]] = {}
    lacking: dict[str, Lacking] = {}
    for ref, body in _bodies(api, choice):
        offer = Lacking(ref=ref, why=NO_SUCH) if body is None else outputs_of(body)
        if body is not None and not choice.takes(read_render(body)):
            continue
        if isinstance(offer, Lacking):
            lacking[ref] = offer
        else:
            outputs[ref] = offer
    return [output for each in outputs.values() for output in each], list(lacking.values())


def _bodies(api: "Api", choice: Choice) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """(NAMESPACE/NAME, object) of each that was chosen; None for a name that is not there."""
    from kubectl_sumerender import renders

    if not choice.names:
        for page in renders.pages(api, selector=choice.selector, field_selector=choice.field_selector):
            for body in page.bodies:
                yield f"{body['metadata']['namespace']}/{body['metadata']['name']}", body
        return
    namespace = api.namespace or "default"
    for name in dict.fromkeys(choice.names):
        try:
            yield f"{namespace}/{name}", renders.get(api, namespace, name)
        except NotFoundError:
            yield f"{namespace}/{name}", None


def _interrupt(*_: object) -> NoReturn:
    """SIGTERM, as a Job's pod gets it: the same clean end as Ctrl-C."""
    raise KeyboardInterrupt

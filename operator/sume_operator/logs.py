"""The log: one JSON object a line, or plain text. Nothing that looks like a key or a signature passes."""

import logging
import sys

from pythonjsonlogger.json import JsonFormatter

from sume_operator.core.wording import masked

_PLAIN = logging.Formatter()


class _Masked(logging.Filter):
    """The last line of defence: texts are made without secrets, and masked all the same."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # a library's slip in its arguments must not reach whoever logs
            text = str(record.msg)
        record.msg, record.args = masked(text), None
        if record.exc_info:  # both formatters take the text where there is no exception to be formatted
            record.exc_text, record.exc_info = masked(_PLAIN.formatException(record.exc_info)), None
        return True


def configure(log_format: str, level: str) -> None:
    """Set up the root logger: `log_format` json or text, `level` as logging names it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Masked())
    if log_format == "json":
        rename = {"asctime": "time", "levelname": "level", "name": "logger"}
        handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=rename))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for talkative in ("kopf", "urllib3", "kubernetes", "asyncio", "aiohttp"):
        logging.getLogger(talkative).setLevel(max(logging.WARNING, logging.getLogger().level))

"""Sends an answer over HTTP: late, slowly, in part or not at all, if it says so."""

import asyncio
from collections.abc import Callable, Iterator

from aiohttp import web

from sume_sandbox.answer import Answer

PIECE_BYTES = 64 * 1024
PIECES_PER_S = 20  # of a slow answer


def _nobody(_: int) -> None:
    """Counts nothing."""


async def deliver(request: web.Request, answer: Answer, on_sent: Callable[[int], None] = _nobody) -> web.StreamResponse:
    """The response to give to aiohttp. Returns early if the client has gone. `on_sent` hears of the body's bytes."""
    if answer.delay_s > 0:
        await asyncio.sleep(answer.delay_s)
    if answer.drop:
        return _dropped(request)
    if answer.is_sent_at_once:
        on_sent(len(answer.body))
        return web.Response(status=answer.http_status, body=answer.body, headers=answer.headers)
    response = web.StreamResponse(status=answer.http_status, headers=answer.headers)
    response.content_length = len(answer.body)
    try:
        await response.prepare(request)
        for piece, pause_s in _pieces(answer):
            await asyncio.sleep(pause_s)
            await response.write(piece)
            on_sent(len(piece))
        if answer.cut_after_bytes is not None and request.transport is not None:
            request.transport.close()  # what was written still arrives
        else:
            await response.write_eof()
    except ConnectionError:
        _dropped(request)
    return response


def _pieces(answer: Answer) -> Iterator[tuple[bytes, float]]:
    """The body in pieces, each with the pause before it."""
    body = answer.body[: answer.cut_after_bytes]
    size, pause_s = PIECE_BYTES, 0.0
    if answer.trickle_s > 0:
        size, pause_s = 1, answer.trickle_s
    elif answer.bytes_per_s > 0:
        size, pause_s = max(1, int(answer.bytes_per_s / PIECES_PER_S)), 1 / PIECES_PER_S
    for position in range(0, len(body), size):
        yield body[position : position + size], pause_s


def _dropped(request: web.Request) -> web.StreamResponse:
    """Close the connection. aiohttp wants a response all the same, and finds that it cannot send it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()

"""Sends an answer over HTTP: late, byte by byte or not at all, if it says so."""

import asyncio

from aiohttp import web

from sume_sandbox.answer import Answer


async def deliver(request: web.Request, answer: Answer) -> web.StreamResponse:
    """The response to give to aiohttp. Returns early if the client has gone."""
    if answer.delay_s > 0:
        await asyncio.sleep(answer.delay_s)
    if answer.drop:
        return _dropped(request)
    if answer.trickle_s > 0:
        return await _trickled(request, answer)
    return web.Response(status=answer.http_status, body=answer.body, headers=answer.headers)


def _dropped(request: web.Request) -> web.StreamResponse:
    """Close the connection. aiohttp wants a response all the same, and finds that it cannot send it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _trickled(request: web.Request, answer: Answer) -> web.StreamResponse:
    """Headers at once, then a byte now and then."""
    response = web.StreamResponse(status=answer.http_status, headers=answer.headers)
    response.content_length = len(answer.body)
    try:
        await response.prepare(request)
        for position in range(len(answer.body)):
            await asyncio.sleep(answer.trickle_s)
            await response.write(answer.body[position : position + 1])
        await response.write_eof()
    except ConnectionError:
        _dropped(request)
    return response

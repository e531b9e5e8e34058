"""The endpoints of routes, made from the signatures of the ``AsyncMemory`` methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import Parameter
from typing import Any, TypeVar

from fastapi import APIRouter, Response

from zettel.async_memory import AsyncMemory
from zettel.remote.routes import COMPOSED, ROUTES
from zettel.server.access import Access, RequestAccess, respond
from zettel.server.bodies import Body, body_of
from zettel.server.parameters import NULLABLE, RESOLVED, in_query, parameters_of
from zettel.server.path_ids import PathId

Handler = Callable[..., Awaitable[Any]]
Function = TypeVar("Function", bound=Handler)
SERVED = {**ROUTES, **COMPOSED}
_IN_PATH = re.compile(r"{(\w+)}")


def endpoint_of(name: str, handler: Handler) -> Handler:
    """Return the endpoint that reads the arguments of a method, calls the handler and encodes its result.

    Raises ``TypeError`` for a parameter without a type in requests, and for a handler that does not accept all.
    """
    parameters, answer = parameters_of(getattr(AsyncMemory, name)), SERVED[name].answer
    _require_accepted(name, parameters, handler)

    async def endpoint(access: Access, body: Body | None = None, **arguments: Any) -> Response:
        if body is not None:
            arguments |= body.given()
        result = await handler(access, **arguments)
        return Response(status_code=204) if answer is None else respond(answer, result)

    return _with_parameters(endpoint, _inputs(name, parameters))


def query_of(name: str, without: str) -> Handler:
    """Return a dependency: the arguments of a method ``without`` one of them, all from the query."""
    parameters = parameters_of(getattr(AsyncMemory, name))

    async def arguments(**arguments: Any) -> dict[str, Any]:
        return arguments

    return _with_parameters(arguments, [in_query(parameter) for parameter in parameters if parameter.name != without])


def _with_parameters(function: Any, parameters: Sequence[Parameter]) -> Handler:
    """Declare the parameters that FastAPI passes to a function."""
    function.__signature__ = inspect.Signature(parameters)
    declared: Handler = function
    return declared


def _require_accepted(name: str, parameters: Sequence[Parameter], handler: Handler) -> None:
    """Raise ``TypeError`` unless a handler accepts the parameters, and by name each that it must resolve."""
    accepted = inspect.signature(handler)
    accepted.bind(None, **dict.fromkeys(parameter.name for parameter in parameters))
    for parameter in parameters:
        if parameter.annotation.removesuffix(NULLABLE) in RESOLVED and parameter.name not in accepted.parameters:
            raise TypeError(f"{name}: a client must not choose {parameter.name}: write a handler that resolves it")


def _inputs(name: str, parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of the endpoint of a method."""
    route = SERVED[name]
    in_path = _IN_PATH.findall(route.path)
    others = [parameter for parameter in parameters if parameter.name not in in_path]
    inputs = [_input("access", RequestAccess), *(_input(part, PathId) for part in in_path)]
    if route.verb in ("GET", "DELETE"):
        return [*inputs, *map(in_query, others)]
    if not others:
        return inputs
    body: Any = body_of(name, others)
    if any(parameter.default is Parameter.empty for parameter in others):
        return [*inputs, _input("body", body)]
    return [*inputs, _input("body", body | None, None)]


def _input(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def endpoint(routes: APIRouter, name: str, **options: Any) -> Callable[[Function], Function]:
    """Register a FastAPI function under the route of a method."""

    def register(function: Function) -> Function:
        _add(routes, name, function, inspect.getdoc(function), **options)
        return function

    return register


def handler(routes: APIRouter, name: str) -> Callable[[Function], Function]:
    """Register a function that is called instead of a method, with the ``Access`` and the arguments of a request."""

    def register(function: Function) -> Function:
        _add(routes, name, endpoint_of(name, function), inspect.getdoc(function))
        return function

    return register


def other_routes(routers: Iterable[APIRouter]) -> APIRouter:
    """Return the routes that no router has. They call the method."""
    served = {(verb, route.path) for router in routers for route in router.routes for verb in route.methods}
    others = APIRouter()
    for name, route in SERVED.items():
        if (route.verb, route.path) not in served:
            _add(others, name, endpoint_of(name, _call_of(name)), None)
    return others


def _add(routes: APIRouter, name: str, endpoint: Callable[..., Any], more: str | None, **options: Any) -> None:
    """Add a route, whose description is the first paragraph of the method's docstring and ``more``."""
    route, doc = SERVED[name], inspect.getdoc(getattr(AsyncMemory, name)) or ""
    declared: dict[str, Any] = {
        "response_model": None if route.answer is None else route.answer.shape,
        "status_code": 204 if route.answer is None else 200,
    }
    description = "\n\n".join(filter(None, (doc.partition("\n\n")[0], more)))
    routes.add_api_route(
        route.path, endpoint, methods=[route.verb], name=name, tags=[route.section], description=description,
        **declared | options,
    )  # fmt: skip


def _call_of(name: str) -> Handler:
    """Return a handler that calls a method. Raises ``TypeError`` for a method that takes no scope."""
    if "scope" not in inspect.signature(getattr(AsyncMemory, name)).parameters:
        raise TypeError(f"{name} concerns all scopes: write a handler in zettel/server that checks the key")

    async def call(access: Access, **arguments: Any) -> Any:
        return await getattr(access.memory, name)(**arguments, scope=access.scope)

    return call

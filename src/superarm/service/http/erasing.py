"""The handlers that take things out of the log."""

from msgspec import Struct

from superarm.service.http.handlers import Answer, Call, check_problem
from superarm.service.runtime import admin, erasing


class DeletedReply(Struct, frozen=True):
    """What was deleted."""

    problem: str


async def delete_problem(call: Call) -> Answer:
    await admin.delete(call.coordinator, call.who.tenant, call.path["name"], call.who.key)
    return 200, DeletedReply(call.path["name"])


class ErasedReply(Struct, frozen=True):
    """How many decisions were erased."""

    problem: str
    erased: int


async def erase_decision(call: Call) -> Answer:
    problem = await erasing.erase_decision(call.coordinator, call.who.tenant, call.path["id"], call.who.key)
    return 200, ErasedReply(problem, 1)


async def erase_problem_decision(call: Call) -> Answer:
    await check_problem(call)
    return await erase_decision(call)


async def erase_unit(call: Call) -> Answer:
    name, unit = call.path["name"], call.body.unit
    n = await erasing.erase_unit(call.coordinator, call.who.tenant, name, unit, call.who.key)
    return 200, ErasedReply(name, n)

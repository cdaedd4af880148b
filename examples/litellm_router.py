"""A routing strategy for litellm's router: learn which deployment of a model succeeds, shared by all processes.

    superarm serve --port 8000                                     # keeps what is learnt
    router = litellm.Router(model_list=[…], num_retries=2)
    await Routing.install(router, "http://127.0.0.1:8000", "chat", check)

Each deployment is an arm, by its ``model_info`` id. What is learnt is in the service: several processes share it, and
one that restarts goes on with it. A call that fails says nothing about the answers of its deployment, which rests for
a minute in this process. Answers are judged by ``check``, a number from 0 to 1. It is for ``acompletion`` alone.
"""

import time
from collections.abc import Callable
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

import superarm as sa

REST = 60.0  # seconds


class Routing(CustomLogger, CustomRoutingStrategyBase):
    """Asks the service for a deployment, and tells it what became of the answer."""

    @classmethod
    async def install(cls, router: litellm.Router, url: str, name: str, check: Callable[[Any], float]) -> Any:
        """Make the problem ``name`` if it is not there, with new deployments as new arms, and route by it."""
        own = cls()
        own.router, own.check, own.resting = router, check, {}
        service = sa.connect(url, asynchronous=True)
        ids = router.get_model_ids()
        known = await service.problems()
        own.agent = service.problem(name) if name in known else await service.create(name, ids, ["good"], 1)
        new = sorted(set(ids) - set(await own.agent.arms()))
        if new:
            await own.agent.add_arms(new)
        router.set_custom_routing_strategy(own)
        litellm.callbacks.append(own)
        return own

    async def async_get_available_deployment(self, model, messages=None, input=None, *args, **kwargs):
        request = kwargs.get("request_kwargs") or args[-1]
        there = {one["model_info"]["id"]: one for one in self.router.get_model_list(model_name=model)}
        awake = [id for id in there if self.resting.get(id, 0.0) < time.monotonic()]
        decision = await self.agent.ask(eligible=awake or list(there))
        request.setdefault("metadata", {})["superarm"] = decision.id
        return there[decision.arms[0]]

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        if decision := kwargs["litellm_params"]["metadata"].get("superarm"):
            await self.agent.tell(decision, [[self.check(response_obj)]])

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        self.resting[kwargs["litellm_params"]["model_info"]["id"]] = time.monotonic() + REST
        if decision := kwargs["litellm_params"]["metadata"].get("superarm"):
            await self.agent.tell(decision, [[0.0]], seen=[[False]])

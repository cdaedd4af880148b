"""One process of a litellm router that routes by superarm: prints which models answered. For ``litellm_test``."""

import asyncio
import json
import sys

import litellm

from examples.litellm_router import Routing


async def main(service: str, endpoint: str, calls: int) -> None:
    at = {"api_base": endpoint, "api_key": "-", "max_retries": 0}
    models = [
        {"model_name": "chat", "litellm_params": {"model": f"openai/{name}", **at}, "model_info": {"id": name}}
        for name in ("short", "good", "down")
    ]
    router, answered = litellm.Router(model_list=models, num_retries=3, retry_after=0), []
    await Routing.install(router, service, "chat", lambda answer: float(answer.choices[0].finish_reason == "stop"))
    for _ in range(calls):
        reply = await router.acompletion("chat", messages=[{"role": "user", "content": "2 + 2 ="}])
        answered.append(reply.model)
        await asyncio.sleep(0.1)  # callbacks run after the answer
    print(json.dumps(answered))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

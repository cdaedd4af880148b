import asyncio

from superarm.service.runtime.locks import StreamLocks

PLACE, OTHER = ("decision", "shop", "visit-1"), ("decision", "shop", "visit-2")


def test_one_holds_a_stream_at_a_time_and_others_go_on():
    async def run():
        streams, said = StreamLocks(), []

        async def work(name, place):
            async with streams.lock(place):
                said.append(f"{name} in")
                await asyncio.sleep(0.0)
                await asyncio.sleep(0.0)
                said.append(f"{name} out")

        await asyncio.gather(work("a", PLACE), work("b", PLACE), work("c", PLACE), work("other", OTHER))
        return said

    said = asyncio.run(run())
    mine = [word for word in said if not word.startswith("other")]
    assert sorted(mine) == sorted(f"{name} {way}" for name in "abc" for way in ("in", "out"))
    assert all(mine[n].split()[0] == mine[n + 1].split()[0] for n in range(0, 6, 2))
    assert said.index("other in") < said.index("a out")


def test_errors_and_those_who_gave_up_waiting_leave_a_stream_free():
    async def run():
        streams = StreamLocks()
        release = asyncio.Event()

        async def hold():
            async with streams.lock(PLACE):
                await release.wait()
                raise KeyError

        async def wait():
            async with streams.lock(PLACE):
                return True

        holder = asyncio.create_task(hold())
        await asyncio.sleep(0.0)
        impatient, patient = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0.0)
        impatient.cancel()
        release.set()
        results = await asyncio.gather(holder, impatient, patient, return_exceptions=True)
        assert isinstance(results[0], KeyError)
        assert isinstance(results[1], asyncio.CancelledError)
        assert results[2]
        assert await wait()

    asyncio.run(run())

"""Decisions without chance are exported as such, not as propensity 1."""

import superarm as sa

from .running import Server, invoke


def test_a_deterministic_policy_has_no_propensities_in_the_export(tmp_path):
    with Server(str(tmp_path / "log.db")) as server:
        service = sa.connect(server.url)
        agent = service.create("ads", ["a", "b", "c"], ["x"], 2, settings={"policy": {"name": "bc_ucb"}})
        for n in range(3):
            agent.tell(agent.ask(id=f"d{n}"), [[1], [0]])
        service.close()
        done = invoke("export", "--db", server.db, str(tmp_path / "log.parquet"))
    assert done.exit_code == 0, done.stderr
    log = sa.offline.Log.read(tmp_path / "log.parquet")
    assert log.deterministic.all()
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "log.parquet").to_pydict()
    assert set(table["propensity_score"]) == {None}
    assert set(table["deterministic"]) == {True}

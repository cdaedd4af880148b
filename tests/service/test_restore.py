"""What an operator does after a disk was lost: restore a backup."""

import shutil

import httpx

from .running import Server, invoke

SPEC = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2}


def test_a_restored_backup_goes_on_from_where_it_was_made(tmp_path):
    db, copy = tmp_path / "log.db", tmp_path / "copy.db"
    with Server(str(db)) as server, httpx.Client(base_url=server.url) as http:
        http.put("/v1/problems/p", json=SPEC)
        for n in range(10):
            slate = http.post("/v1/problems/p/decisions", json={"id": f"d{n}"}).json()["arms"]
            feedback = [{"arm": arm, "value": n % 2} for arm in slate]
            http.post(f"/v1/problems/p/decisions/d{n}/feedback", json={"feedback": feedback})
        at_backup = http.get("/v1/problems/p/arms").json()
        assert invoke("backup", "--db", str(db), str(copy)).exit_code == 0
        lost = http.post("/v1/problems/p/decisions", json={"id": "after"}).status_code
        server.kill()
    assert lost == 201
    for name in ("log.db", "log.db-wal", "log.db-shm", "log.db.mark"):  # the disk is gone
        (tmp_path / name).unlink(missing_ok=True)
    shutil.move(copy, db)
    assert "sound" in invoke("verify", "--db", str(db)).stdout
    with Server(str(db)) as server, httpx.Client(base_url=server.url) as http:
        assert http.get("/v1/problems/p/arms").json() == at_backup
        assert http.get("/v1/problems/p/decisions/after").status_code == 404
        assert http.post("/v1/problems/p/decisions", json={"id": "after"}).status_code == 201

"""Loaders on small files in the exact published layouts."""

import functools
import gzip
import hashlib
import http.server
import json
import threading
import zipfile

import numpy as np
import pytest

from superarm import data
from superarm.core.errors import InvalidArgument, SuperarmError

RATINGS = """userId,movieId,rating,timestamp
1,1,4.0,964982703
1,3,4.0,964981247
1,6,2.0,964982224
2,1,5.0,1445714835
2,6,4.5,1445714885
3,6,5.0,1306463578
3,3,0.5,1306464275
4,3,3.0,1306464275
"""
MOVIES = """movieId,title,genres
1,Toy Story (1995),Adventure|Comedy
3,"Grumpier Old Men, The (1995)",Comedy|Romance
6,Heat (1995),Action|Crime
"""


@pytest.fixture
def ratings(tmp_path):
    place = tmp_path / "ml-latest-small"
    place.mkdir()
    (place / "ratings.csv").write_text(RATINGS)
    (place / "movies.csv").write_text(MOVIES)
    return place


def test_movielens_by_hand(ratings):
    films = data.read_movielens(ratings, n_films=3)
    # user 1 likes films 1 and 3 (Comedy twice), 2 films 1 and 6 (Action is first in the alphabet), 3 film 6, 4 none
    assert films.groups == ("Action", "Comedy")
    assert films.films[:2] == ("Grumpier Old Men, The (1995)", "Heat (1995)")  # three ratings each
    p = dict(zip(films.films, films.p.tolist(), strict=True))
    assert p["Toy Story (1995)"] == [0.5, 1.0]
    assert p["Grumpier Old Men, The (1995)"] == [0.0, 1.0]
    assert p["Heat (1995)"] == [1.0, 0.0]
    assert films.shares.tolist() == pytest.approx([2 / 3, 1 / 3])
    assert films.first.tolist() == [0, 2, 3]  # users 2 and 3, then user 1
    by_title = dict(zip(films.films, films.liked.T.tolist(), strict=True))
    assert by_title == {
        "Grumpier Old Men, The (1995)": [0, 0, 1],
        "Heat (1995)": [1, 1, 0],
        "Toy Story (1995)": [1, 0, 1],
    }
    instance = data.movielens_users(str(ratings), n_films=3, k=1)
    assert np.array_equal(instance.p, data.movielens(str(ratings), n_films=3, k=1).p)
    assert np.array_equal(instance.environment.table, films.liked)


def test_movielens_from_the_published_zip(ratings, tmp_path):
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        for file in ratings.iterdir():
            archive.write(file, f"ml-latest-small/{file.name}")
    assert np.array_equal(data.read_movielens(tmp_path / "ml.zip").p, data.read_movielens(ratings).p)
    instance = data.movielens(str(tmp_path / "ml.zip"), n_films=2, k=1)
    assert instance.problem.n_arms == 2
    assert instance.problem.weights.sum() == pytest.approx(100.0)


def test_a_missing_column_is_named(ratings):
    (ratings / "ratings.csv").write_text(RATINGS.replace("rating,", "stars,"))
    with pytest.raises(InvalidArgument, match=r"ratings\.csv has no column 'rating'"):
        data.read_movielens(ratings)


MSWEB = """I,4,"www.microsoft.com","created by getlog.pl"
T,1,"VRoot",0,0,"VRoot"
N,0,"0"
A,1287,1,"International AutoRoute","/autoroute"
A,1288,1,"library, the","/library"
A,1289,1,"Master Chef Product Information","/masterchef"
C,"10001",10001
V,1287,1
V,1288,1
C,"10002",10002
V,1287,1
C,"10003",10003
V,1289,1
C,"10004",10004
V,1289,1
"""


def test_visits_by_hand(tmp_path):
    path = tmp_path / "anonymous-msweb.data"
    path.write_text(MSWEB)
    visits = data.read_visits(path)
    assert visits.areas == ("International AutoRoute", "library, the", "Master Chef Product Information")
    assert visits.table.astype(int).tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert np.array_equal(data.read_visits(tmp_path).table, visits.table)


def test_groups_of_visitors_cover_all_of_them(tmp_path):
    path = tmp_path / "anonymous-msweb.data"
    path.write_text(MSWEB)
    instance = data.visits(str(path), n_areas=3, n_groups=2, k=1)
    p, weights = instance.p.reshape(3, -1), instance.problem.weights
    assert weights.sum() == pytest.approx(100.0)
    assert sorted((p @ weights).tolist()) == pytest.approx([25.0, 50.0, 50.0])  # the share of visitors of each area
    assert np.array_equal(instance.p, data.visits(str(path), n_areas=3, n_groups=2, k=1).p)


def test_a_visit_before_any_user_is_refused(tmp_path):
    (tmp_path / "x.data").write_text("V,1000,1\n")
    with pytest.raises(InvalidArgument, match="before any user"):
        data.read_visits(tmp_path / "x.data")


SNAP = """# Undirected graph: ../../data/output/ca-HepTh.txt
# Nodes: 3 Edges: 3
# FromNodeId\tToNodeId
24325\t24394
24325\t40517
24394\t24325
"""


def test_snap_layout_plain_and_gzipped(tmp_path):
    (tmp_path / "ca.txt").write_text(SNAP)
    with gzip.open(tmp_path / "ca.txt.gz", "wt") as file:
        file.write(SNAP)
    edges = data.read_edges(tmp_path / "ca.txt")
    assert edges == {(24325, 24394): 1, (24325, 40517): 1, (24394, 24325): 1}
    assert data.read_edges(tmp_path / "ca.txt.gz") == edges


def test_nethept_layout_has_a_head_and_counts_collaborations(tmp_path):
    (tmp_path / "hep.txt").write_text("3 4\n0 1\n0 1\n1 2\n0 2\n")
    assert data.read_edges(tmp_path / "hep.txt") == {(0, 1): 2, (1, 2): 1, (0, 2): 1}
    instance = data.social_graph(str(tmp_path / "hep.txt"), n_seeds=2, k=1, chance=0.5)
    p = np.zeros((2, 3))
    for j in range(2):
        first, last = instance.problem.support.start[j : j + 2]
        p[j, instance.problem.support.items[first:last]] = instance.p[first:last]
    assert p.tolist() == [[1.0, 0.75, 0.5], [0.75, 1.0, 0.5]]


def test_an_edge_that_is_no_pair_names_its_line(tmp_path):
    (tmp_path / "bad.txt").write_text("0 1\n1 two\n")
    with pytest.raises(InvalidArgument, match="line 2"):
        data.read_edges(tmp_path / "bad.txt")


def test_graphs_of_networkx():
    import networkx

    instance = data.social_graph(name="karate_club", n_seeds=34, k=3, chance=0.1)
    graph = networkx.karate_club_graph()
    assert instance.problem.n_arms == instance.problem.n_items == 34
    assert instance.problem.n_entries == 2 * graph.number_of_edges() + 34
    with pytest.raises(InvalidArgument, match="karate_club"):
        data.social_graph(name="karate")
    with pytest.raises(InvalidArgument, match="neither or both"):
        data.social_graph()


OPEN_BANDIT = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user-item_affinity_0
0,2019-11-24 00:00:05.004101+00:00,10,1,1,0.5,aa,b,0.0
1,2019-11-24 00:00:05.004102+00:00,2,2,0,0.25,aa,b,0.0
2,2019-11-24 00:00:05.004103+00:00,10,3,0,0.25,aa,b,1.0
3,2019-11-24 00:00:05.004104+00:00,10,3,1,0.25,bb,b,1.0
"""


def test_open_bandit_by_hand(tmp_path):
    place = tmp_path / "random" / "all"
    place.mkdir(parents=True)
    (place / "all.csv").write_text(OPEN_BANDIT)
    clicks = data.read_open_bandit(tmp_path)
    assert clicks.items == ("2", "10")
    assert clicks.groups == ("aa", "bb")
    assert clicks.p.tolist() == [[0.0, 0.0], [pytest.approx(2.0 / 6.0), 1.0]]
    assert clicks.shown.tolist() == [[1.0, 0.0], [2.0, 1.0]]
    assert clicks.shares.tolist() == [0.75, 0.25]
    assert data.open_bandit(str(place / "all.csv"), k=1).problem.n_arms == 2


def test_arrays_from_files(tmp_path):
    p = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.save(tmp_path / "p.npy", p)
    np.savetxt(tmp_path / "p.csv", p, delimiter=",")
    np.savez(tmp_path / "p.npz", p=p, weights=[1.0, 3.0])
    for name in ("p.npy", "p.csv", "p.npz"):
        assert np.array_equal(data.arrays(str(tmp_path / name), k=2).p, p)
    assert data.arrays(str(tmp_path / "p.npz"), k=2).problem.weights.tolist() == [1.0, 3.0]
    with pytest.raises(InvalidArgument, match="k and actions"):
        data.arrays(str(tmp_path / "p.npy"))
    with pytest.raises(InvalidArgument, match="there is no"):
        data.arrays(str(tmp_path / "q.npy"), k=1)


@pytest.fixture
def site(tmp_path):
    """A real HTTP server on this machine, serving a directory."""
    served = tmp_path / "served"
    served.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=served)
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_first_checksum_is_written_down_and_checked_from_then_on(site, tmp_path):
    served, url = site
    (served / "edges.txt").write_text("0 1\n")
    kept = tmp_path / "kept"
    path = data.fetch(f"{url}/edges.txt", directory=kept)
    assert path.read_text() == "0 1\n"
    digest = hashlib.sha256(b"0 1\n").hexdigest()
    assert json.loads((kept / "checksums.json").read_text()) == {"edges.txt": digest}
    (served / "edges.txt").write_text("0 2\n")
    assert data.fetch(f"{url}/edges.txt", directory=kept).read_text() == "0 1\n"  # kept, not fetched again
    path.unlink()
    with pytest.raises(SuperarmError, match="has another checksum than expected"):
        data.fetch(f"{url}/edges.txt", directory=kept)


def test_a_given_checksum_is_checked_at_once(site, tmp_path):
    served, url = site
    (served / "edges.txt").write_text("0 1\n")
    with pytest.raises(SuperarmError, match="has another checksum than expected"):
        data.fetch(f"{url}/edges.txt", sha256="0" * 64, directory=tmp_path / "kept")


def test_without_a_network_the_remedy_is_a_path(tmp_path):
    with pytest.raises(SuperarmError, match="put it into"):
        data.fetch("http://127.0.0.1:1/edges.txt", directory=tmp_path)
    with pytest.raises(InvalidArgument, match="unknown data set 'movies'"):
        data.fetch("movies")

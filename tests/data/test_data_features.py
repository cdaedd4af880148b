"""Loaders of data with features of users, on small files in the published layouts."""

import math

import numpy as np
import pytest

import superarm as sa
from superarm import data
from superarm.core.errors import InvalidArgument
from superarm.experiments.spec.experiment import find_experiment

YEAST = """@relation MultiLabelData

@attribute Att1 numeric
@attribute Att2 numeric
@attribute Class1 {0,1}
@attribute Class2 {0,1}
@attribute 'Class 3' {0,1}

@data
0.004168,-0.170975,0,0,1
-0.103956,0.011879,0,1,1
0.509949,0.401709,1,0,0
0.119092,0.004412,1,1,0
"""
USERS = """segment,dim_0,dim_1
7,0.5,-1.0
7,0.25,2.0
3,-2.0,0.0
"""
PLAYLISTS = """dim_0,dim_1,dim_2
1.0,0.5,-2.0
0.0,1.0,-1.0
-1.0,0.0,0.5
"""
LOG = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1
0,2019-11-24 00:00:00,0,1,1,0.5,a,x
1,2019-11-24 00:00:01,0,2,0,0.5,a,x
2,2019-11-24 00:00:02,1,1,0,0.5,a,y
3,2019-11-24 00:00:03,1,1,1,0.5,b,y
4,2019-11-24 00:00:04,0,1,0,0.5,b,y
"""
ITEMS = """,item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3
0,0,-0.49917,aed790,67503f,5c1e29
1,1,0.54377,31af38,67503f,5c1e29
"""
MODELS = [sa.models.Segments(), sa.models.Linear(shared=True), sa.models.Linear(shared="arms")]


@pytest.fixture
def files(tmp_path):
    texts = {"yeast.arff": YEAST, "user_features.csv": USERS, "playlist_features.csv": PLAYLISTS}
    for name, text in (texts | {"all.csv": LOG, "item_context.csv": ITEMS}).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_multilabel_by_hand(files):
    found = data.read_multilabel(files / "yeast.arff")
    assert found.features == ("Att1", "Att2")
    assert found.names == ("Class1", "Class2", "Class 3")
    assert found.x[2].tolist() == [0.509949, 0.401709]
    assert found.labels.tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert np.array_equal(data.read_multilabel(files).x, found.x)  # the directory that has it


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{0,1}", "{a,b}", "has the type {a,b}"),
        (",0,0,1\n", ",0,0\n", "without 5 values"),
        ("@data", "@datum", "no @data"),
        (",0,0,1\n", ",0,0,2\n", "not 0 or 1"),
    ],
)
def test_a_file_in_another_layout_is_refused(files, old, new, message):
    (files / "yeast.arff").write_text(YEAST.replace(old, new, 1))
    with pytest.raises(InvalidArgument, match=message):
        data.read_multilabel(files / "yeast.arff")


def test_carousel_by_hand(files):
    found = data.read_carousel(files / "user_features.csv", files / "playlist_features.csv")
    assert found.segments == ("7", "7", "3")
    for u, (a, b) in enumerate([(0.5, -1.0), (0.25, 2.0), (-2.0, 0.0)]):
        for j, (v, w, bias) in enumerate([(1.0, 0.5, -2.0), (0.0, 1.0, -1.0), (-1.0, 0.0, 0.5)]):
            assert found.p[u, j] == pytest.approx(1 / (1 + math.exp(-(a * v + b * w + bias))))
    fewer = data.read_carousel(files, files, n_users=2, seed=1)
    assert len(fewer.users) == 2
    assert {tuple(row) for row in fewer.users} < {tuple(row) for row in found.users}
    (files / "playlist_features.csv").write_text("dim_0,dim_1\n1.0,2.0\n")
    with pytest.raises(InvalidArgument, match="one weight more"):
        data.read_carousel(files, files)


@pytest.mark.parametrize("model", MODELS, ids=["segments", "shared", "arms"])
def test_all_models_have_the_same_users_and_parameters(files, model):
    made = {
        "labels": data.labels(str(files / "yeast.arff"), model, k=1, n_components=2, n_segments=2),
        "carousel": data.carousel(str(files), str(files), model, k=2, n_components=1),
        "open_bandit_users": data.open_bandit_users(str(files / "all.csv"), str(files), model, k=1),
    }
    tables = {name: instance.environment.p for name, instance in made.items()}
    assert tables["labels"].tolist() == data.read_multilabel(files / "yeast.arff").labels.tolist()
    p = data.read_carousel(files, files).p
    assert np.array_equal(tables["carousel"], p[:, np.argsort(-p.mean(axis=0))])
    assert tables["open_bandit_users"].tolist() == [[0.5, 0.0], [0.0, 1.0]]
    policy = sa.kl_ucb() if isinstance(model, sa.models.Segments) else sa.contextual.c2_ucb(0.1)
    for instance in made.values():
        results = sa.simulate(instance, {"policy": policy}, horizon=5, replications=1, progress=False)
        assert results.regret["policy"][0, -1] >= 0


def test_an_experiment_file_names_the_model(files):
    text = f"""
name = "labels"
horizon = 10
replications = 1
[instances.shared]
generator = "labels"
path = "{(files / "yeast.arff").as_posix()}"
model = {{ name = "LinearModel", shared = true }}
k = 1
n_components = 1
n_segments = 2
[policies.C2]
policy = "c2_ucb"
"""
    (files / "labels.toml").write_text(text)
    (cell,) = find_experiment(str(files / "labels.toml")).cells()
    assert cell.instance.problem.context.dimension(1) == 2 * 4

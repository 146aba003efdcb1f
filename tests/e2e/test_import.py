"""`waap place import`: predictors in XGBoost's JSON that were made elsewhere."""

import json

import pytest

from placing import ASKED, Place
from test_place import JETSON, RASPBERRY, FakePrometheus, node
from test_train import train

NAMES = ["conv_layers", "device_load_percent", "model_input_size", "model_output_size", "device_disk_usage_percent",
         "filter_details", "fc_layers", "device", "pool_layers", "total_parameters"]


def tree(number, index, at, below, above, n_features):
    """One split: `below` seconds left of it, `above` from it on."""
    return {
        "base_weights": [0.0, below, above], "categories": [], "categories_nodes": [], "categories_segments": [],
        "categories_sizes": [], "default_left": [0, 0, 0], "id": number, "left_children": [1, -1, -1],
        "loss_changes": [1.0, 0.0, 0.0], "parents": [2147483647, 0, 0], "right_children": [2, -1, -1],
        "split_conditions": [at, below, above], "split_indices": [index, 0, 0], "split_type": [0, 0, 0],
        "sum_hessian": [2.0, 1.0, 1.0],
        "tree_param": {"num_deleted": "0", "num_feature": str(n_features), "num_nodes": "3",
                       "size_leaf_vector": "0"},
    }


def elsewhere(*splits, names=NAMES, n_features=None):
    """What booster.save_model("x.json") writes, of trees with one split each: (feature, at, below, above)."""
    n = n_features or len(names)
    trees = [tree(i, *split, n) for i, split in enumerate(splits)]
    return {
        "learner": {
            "attributes": {"scikit_learn": '{"_estimator_type": "regressor"}'},
            "feature_names": names, "feature_types": ["float"] * len(names),
            "gradient_booster": {"name": "gbtree", "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees)),
                                       "size_leaf_vector": "0"},
                "tree_info": [0] * len(trees), "trees": trees}},
            "learner_model_param": {"base_score": "5E-1", "boost_from_average": "1", "num_class": "0",
                                    "num_feature": str(n), "num_target": "1"},
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": [1, 7, 4],
    }


DEVICE, LOAD = NAMES.index("device"), NAMES.index("device_load_percent")
FASTER_JETSON = (DEVICE, 0.5, 4.0, 2.0)
SLOWER_IF_BUSY = (LOAD, 50.0, 0.0, 3.0)


@pytest.fixture
def imported(run_waap, tmp_path):
    """imported(model, …): the finished command; the predictor is `out`."""

    def run(model, *flags, out="predictor.json"):
        (tmp_path / "theirs.json").write_text(model if isinstance(model, str) else json.dumps(model))
        done = run_waap("place", "import", tmp_path / "theirs.json", f"--out={tmp_path / out}", *flags)
        if "no libxgboost" in done.stderr:
            pytest.skip("no libxgboost on this machine (make deps)")
        return done

    return run


@pytest.fixture
def seconds(started, tmp_path):
    """seconds(nodes): {node: predicted time} by the imported predictor, and the whole explanation."""

    def ask(nodes, out="predictor.json"):
        fake = FakePrometheus(nodes)
        with Place(f"--prometheus.url=http://{fake.address}", f"--predictor={tmp_path / out}") as service:
            explained = service.explain()
        fake.close()
        return {of["node"]: of["predicted_execution_time"] for of in explained["candidates"]}, explained

    return ask


def test_its_predictions_are_those_of_its_trees(imported, seconds):
    done = imported(elsewhere(FASTER_JETSON, SLOWER_IF_BUSY))
    assert done.returncode == 0, done.stderr
    assert "predictor.json: 2 trees imported from theirs.json, with 2 splits" in done.stdout
    assert "all devices" not in done.stderr and "never split on pool_layers\n" in done.stderr
    times, explained = seconds([node("rpi"), node("nx", JETSON), node("busy", JETSON, load=80)])
    assert times == {"rpi": 4.5, "nx": 2.5, "busy": 5.5}
    assert [of["node"] for of in explained["candidates"]] == ["nx", "rpi", "busy"]
    assert explained["predictor"]["trained"] == "2 trees imported from theirs.json"
    # Nobody knows what it was trained with.
    assert explained["confidence"] == "low" and explained["outside_training"] == []


def test_a_predictor_blind_to_devices(imported, seconds):
    """The published original: thousands of splits, none on the device."""
    done = imported(elsewhere(SLOWER_IF_BUSY))
    assert "its trees never split on device: all devices get the same prediction" in done.stderr
    assert "device_load_percent:" not in done.stderr
    times, _ = seconds([node("rpi"), node("nx", JETSON), node("pc", "desktop")])
    assert times == {"rpi": 0.5, "nx": 0.5, "pc": 0.5}


def test_columns_without_names_and_scaled(imported, seconds):
    """As scikit-learn's pipeline leaves it: scaled numbers, one column for each device."""
    model = elsewhere((0, 1.5, 0.0, 3.0), (2, 0.5, 4.0, 2.0), names=[], n_features=3)
    done = imported(model)
    assert done.returncode == 1 and 'theirs.json: feature "f0" is unknown: map it with --map=f0=OURS' in done.stderr
    maps = ["--map=f0=device_load_percent:20:40", "--map=f1=device", "--map=f2=device"]
    done = imported(model, *maps, out="predictor.ubj")
    assert done.returncode == 0, done.stderr
    assert "f0                         device_load_percent              1           80           80" in done.stdout
    times, _ = seconds([node("rpi", load=79), node("busy", load=81), node("nx", JETSON)], "predictor.ubj")
    assert times == {"rpi": 4.5, "busy": 7.5, "nx": 2.5}


def test_one_of_ours_with_other_names_in_another_order(run_waap, imported, seconds, tmp_path):
    (tmp_path / "runs.csv").write_text(run_waap("place", "simulate", "--runs=8", "--seed=7").stdout)
    ours = tmp_path / "ours.json"
    assert train(run_waap, tmp_path / "runs.csv", f"--out={ours}", "--no-validation").returncode == 0
    done = imported(ours.read_text())
    assert done.returncode == 1 and "made by waap place: use it as it is, with --predictor" in done.stderr
    model = json.loads(ours.read_text())
    model["learner"]["attributes"] = {}
    model["learner"]["feature_names"] = NAMES[::-1]
    for one in model["learner"]["gradient_booster"]["model"]["trees"]:
        one["split_indices"] = [len(NAMES) - 1 - index for index in one["split_indices"]]
    done = imported(model, "--log")
    assert done.returncode == 0, done.stderr
    nodes = [node("rpi"), node("nx", JETSON), node("busy", RASPBERRY, load=90)]
    assert seconds(nodes)[0] == seconds(nodes, "ours.json")[0]


def changed(**keys):
    model = elsewhere(FASTER_JETSON)
    for key, value in keys.items():
        place = model
        *path, last = key.split("__")
        for step in path:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return model


TREE = "learner__gradient_booster__model__trees__0__"


@pytest.mark.parametrize("model, said", [
    ("nothing", "theirs.json: not JSON: line 1: "),
    ({"a": 1}, "not a model in XGBoost's JSON: Object item not found: learner"),
    (changed(learner__gradient_booster={"name": "dart", "gbtree": {}}), "its booster is dart; expected gbtree"),
    (changed(learner__objective__name="reg:gamma"), "its objective is reg:gamma; expected reg:squarederror"),
    (changed(learner__learner_model_param__num_target="2"), "it predicts several numbers"),
    (changed(version=[99, 0, 0]), "written by XGBoost 99.0.0, which is later than this machine's"),
    (changed(learner__feature_names=["gpus", *NAMES[1:]]), 'feature "gpus" is unknown: map it with --map=gpus=OURS'),
    (changed(learner__feature_names=NAMES[1:]), "it has 10 features, but 9 names"),
    (changed(**{f"{TREE}split_type": [1, 0, 0]}), "tree 0, node 0: a categorical split"),
    (changed(**{f"{TREE}split_indices": [10, 0, 0]}), "tree 0, node 0: a split by no feature"),
    (changed(**{f"{TREE}left_children": [0, -1, -1]}), "tree 0, node 0: a child that is none"),
    (changed(**{f"{TREE}right_children": [1, -1, -1]}), "tree 0, node 0: a child that is none"),
    (changed(**{f"{TREE}split_conditions": [1.0]}), "tree 0: its lists are empty, or differ in length"),
    (elsewhere(FASTER_JETSON, (0, 1.0, 1.0, 1.0), names=["device", *NAMES[1:]]),
     'both "device" and "device", which its trees split on, are device'),
])
def test_what_is_refused(imported, tmp_path, model, said):
    done = imported(model)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert "Stack trace" not in done.stderr and not (tmp_path / "predictor.json").exists()


PART = "learner__gradient_booster__model__"


@pytest.mark.parametrize("keys", [
    {f"{PART}tree_info": [100_000_000]},
    {f"{PART}tree_info": []},
    {f"{PART}gbtree_model_param__num_trees": "0"},
    {f"{PART}trees": [elsewhere(FASTER_JETSON)["learner"]["gradient_booster"]["model"]["trees"][0],
                      tree(0, LOAD, 50.0, 0.0, 0.0, len(NAMES))],
     f"{PART}tree_info": [0, 0], f"{PART}gbtree_model_param__num_trees": "2"},
    {f"{TREE}parents": [5, 1_000_000_000, -7]},
    {f"{TREE}split_type": []},
    {f"{TREE}categories_nodes": [0]},
    {f"{TREE}categories_nodes": [0], f"{TREE}categories_segments": [0], f"{TREE}categories_sizes": [1 << 30]},
])
def test_what_xgboost_would_crash_on_is_not_believed(imported, seconds, keys):
    done = imported(changed(**keys))
    assert done.returncode == 0, done.stderr
    assert seconds([node("rpi"), node("nx", JETSON)])[0] == {"rpi": 4.5, "nx": 2.5}


@pytest.mark.parametrize("flags, said", [
    (["--map=gpus=device"], "--map=gpus=device: expected THEIRS=OURS; the model has no gpus"),
    (["--map=device"], "--map=device: expected THEIRS=OURS"),
    (["--map=device=gpu"], 'feature "gpu" is unknown'),
    (["--map=device=device:1"], "--map=device=device:1: expected OURS:CENTER:SCALE"),
    (["--map=device=device:1:0"], "the second above 0"),
    (["--out=x.pkl"], "a model's name ends in .json or .ubj"),
])
def test_mistaken_flags(imported, flags, said):
    done = imported(elsewhere(FASTER_JETSON), *flags)
    assert done.returncode == 1 and said in done.stderr, done.stderr


def test_usage(run_waap):
    for arguments, said in ((["--out=a.json"], "expected one FILE.json"), (["a.json"], "expected --out=MODEL.json")):
        done = run_waap("place", "import", *arguments)
        assert done.returncode == 2 and said in done.stderr
    assert set(ASKED) >= {"model_input_size", "fc_layers"}  # aliases are the names of requests

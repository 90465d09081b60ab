"""Recipes for other packagers and the release's workflow say what the package itself says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_conda_recipe_is_that_of_the_package():
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["build"]["noarch"] == "python"
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in PROJECT["scripts"].items()
    ]
    needed = {re.sub(r"(?<=\w)(?=[<>=])", " ", each, count=1) for each in PROJECT["dependencies"]}
    needed.add(f"python {PROJECT['requires-python']}")
    assert set(recipe["requirements"]["run"]) == needed
    assert recipe["about"]["license"] == PROJECT["license"] and recipe["about"]["summary"] == PROJECT["description"]


def test_releases_are_tried_on_every_python_attested_and_published_last():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    pythons = {each.rsplit(" ", 1)[1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)}
    assert set(jobs["try"]["strategy"]["matrix"]["python"]) == pythons
    assert (jobs["try"]["needs"], jobs["publish"]["needs"]) == ("build", "try")
    assert workflow["permissions"] == {"contents": "read"}
    assert any("attest-build-provenance" in step.get("uses", "") for step in jobs["build"]["steps"])
    for job in ("build", "publish"):
        assert jobs[job]["permissions"]["id-token"] == "write"


def test_rattler_accepts_the_recipe():
    rattler = pytest.importorskip("rattler_build")
    recipe = rattler.Stage0Recipe.from_file(str(ROOT / "packaging" / "conda" / "recipe.yaml"))
    (rendered,) = recipe.render(rattler.VariantConfig())
    assert (str(rendered.recipe.package.name), str(rendered.recipe.package.version)) == ("linkwise", PROJECT["version"])

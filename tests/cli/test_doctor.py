# SPDX-License-Identifier: Apache-2.0
"""`tensorcraft doctor` finishes and says what is wrong, whatever is broken."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from process import Run

NAMES = [
    "configuration", "driver", "device", "NVRTC", "cache folder", "disk space", "oneDNN", "Python package", "versions",
    "MPS", "operator",
]  # fmt: skip


def results(checks: list[dict[str, str]]) -> dict[str, str]:
    return {c["name"]: c["result"] for c in checks}


def test_a_healthy_machine_passes(run: Run) -> None:
    done = run("doctor", "--json")
    answer = done.json()
    assert [c["name"] for c in answer["checks"]] == NAMES
    assert [c["number"] for c in answer["checks"]] == list(range(1, len(NAMES) + 1))
    for check in answer["checks"]:
        assert set(check) == {"number", "name", "result", "finding", "fix"}
        assert check["finding"] and "\n" not in check["finding"] + check["fix"]
        assert bool(check["fix"]) == (check["result"] != "PASS")
    failed = [c for c in answer["checks"] if c["result"] == "FAIL"]
    assert not failed and answer["healthy"] is True and done.code == 0


def test_the_text_says_the_same_as_the_json(run: Run) -> None:
    checks = run("doctor", "--json").json()["checks"]
    text = run("doctor").out
    rows = re.findall(r"^ ?(\d+)  (PASS|WARN|FAIL)  (\S+(?: \S+)*)  ", text, re.MULTILINE)
    assert rows == [(str(c["number"]), c["result"], c["name"]) for c in checks]
    assert all(c["fix"] in text for c in checks)
    assert "\033" not in text, "colours are for terminals"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_one_may_be_required(run: Run) -> None:
    assert results(run("doctor", "--json").json()["checks"])["device"] == "WARN"
    required = run("doctor", "--json", "--require-gpu")
    assert required.code == 1
    assert results(required.json()["checks"])["device"] == "FAIL"


def test_everything_broken(run: Run) -> None:
    """No driver (on a machine without one), no NVRTC, no cache, no Python."""
    done = run("doctor", "--json", HOME=None, TENSORCRAFT_CACHE_DIR="/proc/none/cache", PATH="/nonexistent",
               TENSORCRAFT_NVRTC="/nonexistent/libnvrtc.so", LD_LIBRARY_PATH=None)  # fmt: skip
    answer = done.json()
    found = results(answer["checks"])
    assert done.code == 1 and answer["healthy"] is False
    assert found["cache folder"] == "FAIL" and found["Python package"] == "WARN"
    has_gpu = Path("/dev/nvidiactl").exists()
    assert found["NVRTC"] == ("FAIL" if has_gpu else "WARN")
    assert found["operator"] == ("FAIL" if has_gpu else "PASS")
    text = {c["name"]: c["finding"] for c in answer["checks"]}
    assert text["NVRTC"] == "NVRTC JIT compiler not available"
    assert text["Python package"] == "there is no python3"


def test_an_nvrtc_that_does_not_compile_every_kernel_is_named(run: Run, command: Path) -> None:
    old = command.parents[2] / "tests" / "libtensorcraft_fake_nvrtc.so"  # it says that it is 1.0, and compiles anything
    if not old.exists():
        pytest.skip("this build has no tests")
    checks = run("doctor", "--json", TENSORCRAFT_NVRTC=str(old)).json()["checks"]
    (nvrtc,) = (c for c in checks if c["name"] == "NVRTC")
    assert nvrtc["finding"] == f"1.0 at {old} is older than 12.5, the first that compiles every kernel"
    assert nvrtc["result"] == ("FAIL" if Path("/dev/nvidiactl").exists() else "WARN") and "12.5" in nvrtc["fix"]


def test_no_home_at_all(run: Run) -> None:
    done = run("doctor", "--json", HOME=None, TENSORCRAFT_CACHE_DIR=None, XDG_CACHE_HOME=None)
    assert done.code == 1
    (cache,) = (c for c in done.json()["checks"] if c["name"] == "cache folder")
    assert cache["result"] == "FAIL" and "no home folder" in cache["finding"]


@pytest.mark.parametrize("kind", ["file", "link", "shared", "readonly"])
def test_a_cache_folder_that_cannot_be_used(run: Run, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "cache"
    if kind == "file":
        folder.write_text("")
    elif kind == "link":
        (tmp_path / "other").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "other")
    elif kind == "shared":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        if os.geteuid() == 0:
            pytest.skip("root writes anywhere")
        folder.mkdir(mode=0o500)
    done = run("doctor", "--json")
    assert done.code == 1
    (cache,) = (c for c in done.json()["checks"] if c["name"] == "cache folder")
    assert cache["result"] == "FAIL" and str(folder) in cache["finding"] and "TENSORCRAFT_CACHE_DIR" in cache["fix"]


@pytest.mark.parametrize(
    "changes",
    [{"TENSORCRAFT_LOG": "loud"}, {"TENSORCRAFT_CONFIG": "/nonexistent.json"}, {"TENSORCRAFT_DEVICE": "tpu"}],
)
def test_a_configuration_that_is_not_valid(run: Run, changes: dict[str, str]) -> None:
    done = run("doctor", "--json", **changes)
    checks = {c["name"]: c for c in done.json()["checks"]}
    assert done.code == 1 and list(checks) == NAMES
    assert checks["configuration"]["result"] == "FAIL"
    assert next(iter(changes)) in checks["configuration"]["finding"]
    assert checks["cache folder"]["finding"] == "not known: there is no valid configuration"


def test_an_unknown_variable_is_warned_of_with_the_name_that_is_meant(run: Run) -> None:
    devise, foo = ("TENSORCRAFT_" + end for end in ("DEVISE", "FOO"))  # apart, as check_budgets.py takes names for ours
    done = run("doctor", "--json", **{devise: "cpu", foo: "1"})
    check = done.json()["checks"][0]
    assert done.code == 0 and (check["name"], check["result"]) == ("configuration", "WARN")
    assert check["finding"] == (
        f"the variable {devise} is not known and has no effect; did you mean TENSORCRAFT_DEVICE?; "
        f"the variable {foo} is not known and has no effect"
    )
    assert done.err.count(devise) == 1  # the warning of every program


def test_a_configuration_file_of_many_levels_is_refused(run: Run, tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text('{"log":\n' + "[" * 100_000 + "]" * 100_000 + "}")
    finding = f"{deep}:2:64: arrays and objects are nested more than 64 levels deep"
    done = run("doctor", "--json", TENSORCRAFT_CONFIG=str(deep))
    assert done.code == 1 and done.json()["checks"][0]["finding"] == finding
    done = run("devices", TENSORCRAFT_CONFIG=str(deep))
    assert done.code == 2 and finding in done.err


def test_a_python_package_of_another_version_fails(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "tensorcraft"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '9.9.9'\n")
    done = run("doctor", "--json", PYTHONPATH=str(package.parent))
    checks = {c["name"]: c for c in done.json()["checks"]}
    assert checks["Python package"]["finding"] == f"9.9.9 in {package}"
    assert checks["versions"]["result"] == "FAIL" and "Python package 9.9.9" in checks["versions"]["finding"]
    assert done.code == 1


def test_a_command_that_is_found_by_path_sees_its_environment(
    command: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    for folder, version in (("first", "1.1.1"), ("venv/bin", "2.2.2")):
        (tmp_path / folder).mkdir(parents=True)
        python = tmp_path / folder / "python3"
        python.write_text(f"#!/bin/sh\necho version {version}\necho place /there/__init__.py\n")
        python.chmod(0o755)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "venv" / "bin" / "tensorcraft").symlink_to(command)
    environment["PATH"] = f"{tmp_path}/first:{tmp_path}/venv/bin:{environment['PATH']}"
    for name in ("tensorcraft", "./tensorcraft"):
        done = subprocess.run(
            [name, "doctor", "--json"], capture_output=True, text=True, env=environment, check=False,
            cwd=tmp_path / "venv" / "bin",
        )  # fmt: skip
        checks = {c["name"]: c["finding"] for c in json.loads(done.stdout)["checks"]}
        assert checks["Python package"] == "2.2.2 in /there", name


def test_the_probe_leaves_nothing_in_the_cache(run: Run, tmp_path: Path) -> None:
    run("doctor")
    assert not [p.name for p in (tmp_path / "cache").iterdir() if p.name.startswith("probe")]

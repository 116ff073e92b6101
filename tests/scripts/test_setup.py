# SPDX-License-Identifier: Apache-2.0
"""What setup.sh finds out about a machine; it installs nothing here."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTIONS, _ = (ROOT / "scripts" / "setup.sh").read_text().split("\nmkdir -p", 1)


def ask(command, path):
    """The standard output of a command that may use setup.sh's functions."""
    script = f"unset TENSORCRAFT_NVRTC\n{FUNCTIONS}\ncompgen() {{ false; }}\n{command}"  # no toolkit in /usr/local
    done = subprocess.run(["/bin/bash", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fake(folder, name, body):
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


def test_a_user_without_sbin_in_the_path_is_told_the_same():
    assert ask("loader_knows libc.so.6 && echo yes", "/usr/bin:/bin") == "yes"
    assert ask("loader_knows libabsent.so || echo no", "/usr/bin:/bin") == "no"


def test_nvrtc_is_no_newer_than_the_driver_and_compiles_every_kernel(tmp_path):
    # The list is longer than a pipe holds, as it is on machines with many libraries.
    fake(
        tmp_path,
        "ldconfig",
        "echo 'libcuda.so.1 => /lib/libcuda.so.1'; yes 'libother.so => /lib/libother.so' | head -c 300000",
    )
    for version, wanted in (
        ("12.2", "nvidia-cuda-nvrtc-cu12>=12.5,<12.6"),
        ("12.5", "nvidia-cuda-nvrtc-cu12>=12.5,<12.6"),
        ("12.8", "nvidia-cuda-nvrtc-cu12>=12.5,<12.9"),
        ("13.0", "nvidia-cuda-nvrtc>=13.0,<13.1"),
        ("", ""),
    ):
        fake(tmp_path, "python3", f"echo {version}")
        assert ask("nvrtc_requirement", f"{tmp_path}:/usr/bin:/bin") == wanted


def test_a_library_of_the_system_is_used(tmp_path):
    fake(tmp_path, "ldconfig", "echo libnvrtc.so.12; echo libcuda.so.1; yes libother.so | head -c 300000")
    fake(tmp_path, "python3", "echo 12.4")
    assert ask("nvrtc_requirement", f"{tmp_path}:/usr/bin:/bin") == ""


@pytest.mark.parametrize(
    ("candidate", "install", "said"),
    [
        ("1.0", "true", ["setup: installing browser with apt"]),
        ("1.0", "false", ["setup: installing browser with apt", "setup: browser could not be installed"]),
        ("(none)", "exit 9", ["setup: browser is not among this system's packages: the test is skipped"]),
    ],
)
def test_a_package_that_there_is_not_is_left_out(tmp_path, candidate, install, said):
    fake(tmp_path, "apt-cache", f"echo '  Candidate: {candidate}'")
    fake(tmp_path, "apt-get", install)
    fake(tmp_path, "sudo", '"$@"')
    answer = ask("install_where_offered browser 'the test'", f"{tmp_path}:/usr/bin:/bin").splitlines()
    assert len(answer) == len(said)
    assert all(line.startswith(start) for line, start in zip(answer, said, strict=True)), answer
    fake(tmp_path, "browser", "true")
    assert ask("install_where_offered browser 'the test'", f"{tmp_path}:/usr/bin:/bin") == ""


def carry(folder, script):
    """A script that runs an example, in a folder where those that it calls are missing; its path."""
    (folder / "scripts").mkdir(exist_ok=True)
    for name in (script, "example.sh"):
        (folder / "scripts" / name).write_text((ROOT / "scripts" / name).read_text())
    return str(folder / "scripts" / script)


@pytest.mark.parametrize("script", ["demo.sh", "chat.sh", "graph.sh", "classify.sh"])
@pytest.mark.parametrize("words", [["-h"], ["--no-onednn", "--help"], ["a question", "--help"]])
def test_the_demos_say_their_usage_and_install_nothing(tmp_path, script, words):
    done = subprocess.run(["/bin/bash", carry(tmp_path, script), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"usage: {script}" in done.stdout and not done.stderr


@pytest.mark.parametrize(
    "script, example, needs",
    [
        ("demo.sh", "sentence_search/search.py", []),
        ("chat.sh", "chat/chat.py", []),
        ("graph.sh", "graph/graph.py", ["--graph"]),
        ("classify.sh", "image_classification/classify.py", ["--image"]),
    ],
)
@pytest.mark.parametrize("onednn", [[], ["--no-onednn"]])
def test_the_demos_set_up_build_and_hand_their_words_on(tmp_path, script, example, needs, onednn):
    """With `--no-onednn` for the first two, and words that stay as they are."""
    path = carry(tmp_path, script)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("scripts/setup.sh", "scripts/build.sh", ".venv/bin/python"):
        fake(tmp_path, name, f"printf '%s|' {name} \"$@\"; echo")
    words = ["two  words", "--top", "3"]
    command = ["/bin/bash", path, *onednn, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    calls = [line.rstrip("|").split("|") for line in done.stdout.splitlines()]
    assert calls == [
        ["scripts/setup.sh", *needs, *onednn],
        ["scripts/build.sh", "--package", *onednn],
        [".venv/bin/python", str(tmp_path / "examples" / example), *words],
    ]


def test_without_words_there_is_a_chat_and_no_search(tmp_path):
    for name in ("setup.sh", "build.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        fake(tmp_path, f"scripts/{name}", "true")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    fake(tmp_path, ".venv/bin/python", "echo python $#")
    for script, code, said in (("chat.sh", 0, "python 1\n"), ("demo.sh", 2, "")):
        done = subprocess.run(["/bin/bash", carry(tmp_path, script)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (code, said)


@pytest.mark.skipif(not (ROOT / ".venv" / "installed").exists(), reason="setup.sh has not run in this tree")
def test_the_environment_of_the_tree_has_package_and_command_from_any_folder(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for folder in (ROOT, tmp_path):  # in the root lies a folder of the package's name
        for command in (
            [ROOT / ".venv/bin/python", "-c", "import tensorcraft; print('tensorcraft', tensorcraft.__version__)"],
            [ROOT / ".venv/bin/tensorcraft", "--version"],
        ):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert done.stdout.startswith("tensorcraft 0."), done.stderr

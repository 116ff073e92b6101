# SPDX-License-Identifier: Apache-2.0
"""Every subcommand: its text, its JSON, its exit codes."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from process import ROOT, Run, open_terminal

import tensorcraft as tc

COMMANDS = [
    ("doctor",), ("devices",), ("ops",), ("ops", "gemm"), ("explain", "relu", "4"), ("cache", "ls"), ("cache", "stat"),
    ("cache", "verify"), ("cache", "clear"), ("clangd", "--output", "-"), ("fragments",), ("completion", "bash"), ("completion", "zsh"),
    ("completion", "fish"), ("help",), ("help", "cache", "ls"), ("help", "environment"),
    ("report", str(ROOT / "tests" / "cli" / "made_up_results.json")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_json_is_one_object_and_text_has_no_colours(run: Run, arguments: tuple[str, ...]) -> None:
    assert isinstance(run(*arguments, "--json").json(), dict)
    text = run(*arguments)
    assert text.out and "\033" not in text.out


def test_colours_are_for_terminals(command: Path, environment: dict[str, str]) -> None:
    ours, theirs = open_terminal()
    subprocess.run([command, "devices"], stdout=theirs, stderr=subprocess.DEVNULL, env=environment, check=True)
    os.close(theirs)
    assert b"\033[1mdevice\033[0m" in os.read(ours, 65536)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "give a command: "),
        (("cache",), 2, "give a command: ls, stat, verify, clear, export, import\nSee tensorcraft cache --help"),
        (("cache", "--json"), 2, "give a command: ls"),
        (("explain", "--frob"), 2, "there is no option --frob\nSee tensorcraft explain --help"),
        (("nothing",), 2, "there is no command nothing"),
        (("cache", "nothing"), 2, "nothing"),
        (("doctor", "--loud"), 2, "--loud"),
        (("explain",), 2, "op is required"),
        (("explain", "relux", "4"), 2, 'no operator is named "relux"'),
        (("explain", "relu", "4x"), 2, "relu: x must be a shape"),
        (("explain", "relu", "4", "--dtype", "half"), 2, "half"),
        (("explain", "relu", "4", "--arch", "sm_1"), 2, 'architecture "sm_1" is not known'),
        (("explain", "relu", "4", "--arch", "sm_80", "--device", "cpu"), 2, "give one"),
        (("explain", "relu", "4", "--variant", "best"), 2, 'no variant is named "best"'),
        (("explain", "gemm", "4x4", "5x4"), 2, "gemm: b: Size mismatch"),
        (("bench", "softmax", "8x8", "--device", "cpu", "--variant", "quick"), 2, 'is named "quick"; there are cpu, reference and all'),
        (("warmup",), 2, "nothing to compile"),
        (("warmup", "/nonexistent", "--arch", "sm_80"), 3, "/nonexistent cannot be read"),
        (("warmup", "/", "--arch", "sm_80"), 3, "/ is a folder; give a file with one call a line"),
        (("warmup", "relu 4", "--arch", "sm_80"), 3, "relu 4 cannot be read; --call gives a call"),
        (("warmup", "--call", "relu 4x", "--arch", "sm_80"), 2, "--call: relu: x must be a shape"),
        (("warmup", "--call", "relu 4", "--device", "cpu"), 2, "cpu compiles nothing"),
        (("clangd", "--output", "/nonexistent/.clangd"), 3, "cannot be written to"),
        (("completion", "csh"), 2, "csh"),
        (("ops", "sofmax"), 2, 'no operator is named "sofmax"; did you mean softmax? tensorcraft ops lists all'),
        (("ops", "zzzzzz"), 2, 'no operator is named "zzzzzz"; tensorcraft ops lists all'),
        (("explian", "relu"), 2, "there is no command explian; did you mean explain?"),
        (("cache", "lst"), 2, "there is no command lst; did you mean ls?"),
        (("help", "wramup"), 2, "there is no command wramup; did you mean warmup?"),
        (("explain", "relu", "4", "--dytpe=f32"), 2, "there is no option --dytpe; did you mean --dtype?"),
        (("explain", "relu", "4", "--dtype", "flota32"), 2, "did you mean float32?"),
        (("explain", "softmax", "4", "--option", "axsi=0"), 2, "did you mean axis?"),
        (("explain", "gelu", "4", "--option", "approximate=tahn"), 2, "did you mean tanh?"),
        (("explain", "gemm", "4x4", "4x4", "--variant", "refrence"), 2, "did you mean reference?"),
        (("explain", "elementwise", "4x4", "4x4", "--option", "expression=g*u"), 2, "name the 2 arrays as its expression does, such as --option operands=g,u"),
    ],
)
def test_a_mistake_is_one_message_and_its_code(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err and "tensorcraft: " in done.err


def test_an_error_in_json(run: Run) -> None:
    done = run("explain", "relux", "4", "--json")
    assert done.code == 2 and done.json()["error"]["kind"] == "key"
    assert 'no operator is named "relux"' in done.json()["error"]["message"]


def test_a_full_disk_is_an_error(command: Path, environment: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [command, "ops"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == 3 and "standard output cannot be written to" in done.stderr


PRINTED = [("--version",), ("--help",), ("help", "environment"), *COMMANDS[:-1]]
EVERY_HELP = ["doctor", "devices", "ops", "explain", "bench", "tune", "profile", "warmup", "cache", "clangd", "fragments", "report", "help", "completion"]


@pytest.mark.parametrize("arguments", [*PRINTED, *((name, "--help") for name in EVERY_HELP)], ids=" ".join)
def test_whatever_cannot_be_printed_is_an_error(
    command: Path, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [command, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == 3 and "standard output cannot be written to" in done.stderr


def test_the_help_of_a_command_has_examples_that_it_takes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "calls.txt").write_text("relu 64\n")
    (tmp_path / "results.json").write_bytes((ROOT / "tests" / "cli" / "made_up_results.json").read_bytes())
    slow = ("bench", "tune", "profile", "doctor", "fragments", "warmup", "cache export")  # other tests run them
    for name in EVERY_HELP:
        text = run(name, "--help").out
        assert "docs/" not in text
        lines = [line.removeprefix("  tensorcraft ") for line in text.split("Examples:\n")[1].splitlines() if line]
        assert lines and all(line.startswith(name) for line in lines), name
        for line in lines:
            done = run(*shlex.split(line.split(" > ")[0], posix=True)) if not line.startswith(slow) else None
            assert done is None or done.code == 0, line


def test_help_names_any_command(run: Run) -> None:
    assert run("help").out.startswith("TensorCraft: ") and run("help").out.strip() == run("--help").out.strip()
    assert run("help", "explain").out.strip() == run("explain", "--help").out.strip()
    assert "tensorcraft cache export" in run("help", "cache", "export").out
    settings = {s["variable"]: s for s in run("help", "environment", "--json").json()["settings"]}
    assert settings["TENSORCRAFT_DEVICE"]["accepted"] == "cpu, cuda, cuda:N or simt"
    assert "TENSORCRAFT_DEVICE, in the file: device" in run("help", "environment").out


def test_explain_has_what_the_choice_weighed(run: Run) -> None:
    call = ("explain", "gemm", "1024x1024", "1024x1024", "--dtype", "bf16", "--arch", "sm_90a")
    answer = run(*call, "--json", TENSORCRAFT_NVRTC="/nonexistent").json()
    chosen = next(v for v in answer["variants"] if v["name"] == answer["variant"])
    fastest = min(chosen["candidates"], key=lambda c: c["predicted_us"])
    assert fastest["chosen"] and fastest["rounds"] >= 1 and 0 < fastest["busy"] <= 1
    text = run(*call, TENSORCRAFT_NVRTC="/nonexistent").out
    assert chosen["why"] in text and "* " + fastest["config"] in text


def test_explain_says_in_json_what_python_is_told(run: Run) -> None:
    answer = run("explain", "softmax", "4x8", "--device", "cpu", "--json").json()
    told = tc.explain(tc.softmax, np.zeros((4, 8), np.float32), device="cpu")
    assert answer.keys() - {"device_name"} == set(told._fields) - {"text"}
    assert answer["variants"][0].keys() == set(told.variants[0]._fields)
    for name in ("op", "device", "variant", "prior", "staged", "floor_us", "bytes", "flops"):
        assert answer[name] == getattr(told, name), name


def test_explain_lists_the_architectures_that_it_knows(run: Run) -> None:
    refused = run("explain", "relu", "4", "--arch", "sm_1").err
    known = re.findall(r"sm_\d+a?", refused.split("use ")[1])
    assert len(known) == 6 and ", ".join(known) in run("explain", "--help").out
    assert all(run("explain", "relu", "4", "--arch", arch, TENSORCRAFT_NVRTC="/nonexistent").code == 0 for arch in known)


def test_a_machine_without_a_gpu_is_told_once_and_by_what_computes(run: Run) -> None:
    quick = ("--seconds", "0.01", "--warmup", "0.01")
    for silent in (("explain", "relu", "4"), ("devices",), ("ops",), ("doctor",), ("bench", "--help"), ("explain", "relux", "4"),
                   ("bench", "relu", "8", "--device", "cpu", *quick)):  # fmt: skip
        assert "Falling back" not in run(*silent).err, silent
    done = run("bench", "relu", "8", *quick)
    if Path("/dev/nvidiactl").exists() or done.code == 3:
        pytest.skip("a GPU is here, or no Google Benchmark")
    assert done.err.count("Falling back to CPU simulation backend: operators run on the CPU as native code, ") == 1
    assert "Falling back" not in run("bench", "relu", "8", *quick, TENSORCRAFT_DEVICE="cpu").err


def test_a_cache_folder_that_cannot_be_used_fails_a_warmup(run: Run, tmp_path: Path) -> None:
    for arguments in (("relu 4",), ("--call", "relu 4", "--arch", "sm_90a")):
        done = run("warmup", *arguments, TENSORCRAFT_CACHE_DIR="/dev/null")
        assert done.code == 3 and done.out == ""
        assert done.err == "tensorcraft: the cache folder cannot be used: /dev/null: is a symbolic link or no folder\n"


def test_a_call_of_a_file_is_named_by_its_line(run: Run, tmp_path: Path) -> None:
    calls = tmp_path / "calls.txt"
    calls.write_text("# layers\nrelu 4\nsofmax 4x4\n")
    done = run("warmup", str(calls), "--arch", "sm_90a")
    assert done.code == 2 and f'{calls}:3: no operator is named "sofmax"; did you mean softmax?' in done.err
    done = run("warmup", "-", "--arch", "sm_90a", stdin="relu 4 4\n")
    assert done.code == 2 and "standard input:1: relu: takes 1 shape (x), got 2" in done.err


def test_fragments_are_those_of_a_gpu_or_the_emulator(run: Run) -> None:
    done = run("fragments", "--device", "cpu")
    assert done.code == 2 and "--device must be a GPU or simt, which have fragments, got cpu" in done.err


def test_fragments_runs_what_it_prints(run: Run) -> None:
    result = run("fragments", "--device", "simt", "--json").json()
    assert result["device"] == "simt" and "13.a0" in result["maps"]
    assert len(result["checks"]) >= 8
    assert all(c["registers"] > 0 and c["wrong"] == 0 for c in result["checks"])
    quiet = run("fragments", "--device", "simt", "--quiet").out
    assert "13.a0" not in quiet and "the maps are those of simt" in quiet
    assert run("fragments", "--device", "tpu").code == 2


def test_devices(run: Run) -> None:
    devices = run("devices", "--json").json()["devices"]
    assert devices[0]["device"] == "cpu" and devices[0]["usable"] and devices[0]["name"]
    assert [d["default"] for d in devices].count(True) == 1
    figures = {"compute_capability", "num_sms", "threads_per_sm", "shared_bytes_per_sm", "l2_bytes", "memory_bytes", "memory_gb_per_s",
               "peak_bf16_tflops", "peak_fp8_tflops", "tensor_cores", "tma", "fp8", "ue8m0"}  # fmt: skip
    assert figures | {"arch", "problem"} <= set(devices[0])
    for d in devices:
        known = [d[name] for name in ("tensor_cores", "tma", "fp8", "ue8m0")]
        assert known == [d["compute_capability"] >= least for least in (70, 90, 89, 100)]


def test_ops_is_the_registry(run: Run) -> None:
    listed = {o["name"]: o for o in run("ops", "--json").json()["operators"]}
    index = (ROOT / "docs" / "operators.md").read_text()
    assert set(listed) == set(re.findall(r"^\| `(\w+)` \|", index, re.MULTILINE))
    rows = run("ops").out.splitlines()
    assert rows[0].split() == ["operator", "devices", "GPU", "variants", "CPU", "variants", "dtypes", "documentation"]
    assert [row.split()[0] for row in rows[1:]] == list(listed)
    for operator in listed.values():
        assert {"cuda", "cpu"} <= set(operator["devices"]) and operator["dtypes"] and operator["summary"]
        page, anchor = operator["documentation"].split("#")
        assert f"\n## {anchor.replace('-', ' ')}\n" in (ROOT / page).read_text()
    one = run("ops", "gemm").out
    assert all(v["name"] in one and v["idea"] in one for v in listed["gemm"]["variants"])


PLACE = {"sm_90a": "for sm_90a", "cuda:0": "on cuda:0"}


def test_explain_on_the_cpu(run: Run) -> None:
    answer = run("explain", "l2_normalize", "4x8", "--device", "cpu", "--json").json()
    assert answer["device"] == "cpu" and answer["variant"] == "cpu" and answer["kernels"] == []
    assert [v["name"] for v in answer["variants"]] == ["cpu", "reference"]
    assert answer["bytes"] == 2 * 4 * 8 * 4
    text = run("explain", "l2_normalize", "4x8", "--device", "cpu").out
    assert text.startswith("l2_normalize on cpu: cpu, the first that accepts, in the order of the table\n* cpu ")
    assert "work: 256 B, " in text
    forced = run("explain", "l2_normalize", "4x8", "--device", "cpu", "--variant", "reference").out
    assert forced.startswith("l2_normalize on cpu: reference, because the call names it\n")
    short = run("explain", "relu", "4", "--dtype", "bf16", "--device", "cpu", "--json").json()
    assert short["bytes"] == 2 * 4 * 2


def test_explain_for_a_gpu_that_is_not_here(run: Run, has_nvrtc: bool) -> None:
    arguments = ("explain", "gemm", "4096x4096", "4096x4096", "--arch", "sm_90a")
    answer = run(*arguments, "--json").json()
    assert set(answer) == {
        "op", "device", "device_name", "variant", "variants", "kernels", "bytes", "flops", "floor_us", "prior", "staged", "tuned",
    }  # fmt: skip
    assert answer["device"] == "sm_90a" or Path("/dev/nvidiactl").exists()  # which may be one
    assert answer["flops"] == 2 * 4096**3 and answer["bytes"] == 3 * 4096**2 * 4
    assert answer["floor_us"] > 0
    accepted = [v for v in answer["variants"] if v["accepted"]]
    assert all(v["estimate_us"] >= answer["floor_us"] and v["file"].startswith("tensorcraft/ops/gemm/") for v in accepted)
    assert all((ROOT / v["file"]).is_file() for v in accepted)
    declined = {v["name"]: v["reason"] for v in answer["variants"] if not v["accepted"]}
    assert "takes 16-bit operands" in declined["tensor_core"]
    (kernel,) = answer["kernels"]
    assert kernel["arch"] == "sm_90a" and kernel["block"][0] > 0
    if not has_nvrtc:
        pytest.skip("there is no NVRTC")
    assert kernel["problem"] == "" and 16 <= kernel["registers"] <= 255 and kernel["shared_bytes"] > 0
    assert 0 < kernel["occupancy"]["fraction"] <= 1 and kernel["occupancy"]["blocks_per_sm"] >= 1
    text = run(*arguments).out
    assert text.startswith(f"gemm {PLACE[answer['device']]}: {answer['variant']}, the first that accepts, in the order of the table\n")
    assert "us or more" in text and "it is no measurement" in text
    assert re.search(r"occupancy \d+ %: ", text) and re.search(r"\nfloor: \d+ us, ", text)
    assert "declines: float32 would be rounded to tf32" in text and f"{kernel['registers']} registers a thread" in text


def test_explain_without_nvrtc_says_so(run: Run) -> None:
    done = run("explain", "relu", "1024", "--arch", "sm_90a", "--json", TENSORCRAFT_NVRTC="/nonexistent")
    kernel = done.json()["kernels"][0]
    assert done.code == 0 and kernel["problem"] == "NVRTC JIT compiler not available" and "registers" not in kernel
    text = run("explain", "relu", "1024", "--arch", "sm_90a", TENSORCRAFT_NVRTC="/nonexistent").out
    assert "registers and occupancy are not known: NVRTC JIT compiler not available" in text


def test_explain_takes_options_before_and_after_the_shapes(run: Run) -> None:
    arguments = ["--option", "bias=32", "--option", "alpha=2", "16x32", "32x32", "--option", "activation=relu"]
    answer = run("explain", "gemm", *arguments, "--arch", "sm_80", "--json").json()
    config = next(v["config"] for v in answer["variants"] if v["accepted"])
    assert "has_bias = 1" in config and "activation = relu" in config


def test_a_call_that_refuses_tf32_gets_none(run: Run) -> None:
    call = ("explain", "gemm", "256x256", "256x256", "--arch", "sm_80", "--json")
    configured = run(*call, TENSORCRAFT_ALLOW_TF32="1").json()["variant"]
    assert configured.endswith("_tf32") and not run(*call).json()["variant"].endswith("_tf32")
    refused = run(*call, "--option", "allow_tf32=False", TENSORCRAFT_ALLOW_TF32="1").json()["variant"]
    assert not refused.endswith("_tf32")


def test_explain_shows_the_second_kernel_of_a_call(run: Run, has_nvrtc: bool) -> None:
    arguments = ("explain", "sum", "256x1024", "--arch", "sm_90a")
    answer = run(*arguments, "--json").json()
    first, second = answer["kernels"]
    assert first["grid"][0] > second["grid"][0] > 0
    one = run("explain", "sum", "256x1024", "--option", "axis=1", "--arch", "sm_90a", "--json").json()
    assert len(one["kernels"]) == 1
    assert "\nthen a second kernel for sm_90a: grid " in run(*arguments).out
    if has_nvrtc:
        assert "reduce_combine" in second["signature"]


def test_a_forced_variant_that_declines_is_a_failed_check(run: Run) -> None:
    done = run("explain", "gemm", "64x64", "64x64", "--arch", "sm_90a", "--variant", "tensor_core")
    assert done.code == 1 and done.out.startswith(tuple(f"gemm {place}: no variant accepts" for place in PLACE.values()))


def test_explain_shows_no_registers_of_a_gpu_for_simt(run: Run) -> None:
    answer = run("explain", "softmax", "64x64", "--device", "simt", "--json").json()
    (kernel,) = answer["kernels"]
    assert answer["device"] == "simt" and "registers" not in kernel and "ask about sm_90a" in kernel["problem"]


def test_explain_of_an_expression(run: Run) -> None:
    call = ("explain", "elementwise", "4x4", "4x4", "--option", "expression=silu(g) * u", "--option", "operands=g,u", "--json")
    assert run(*call).json()["flops"] > 0


def test_warmup_fills_the_cache_that_the_others_show(run: Run, tmp_path: Path, has_nvrtc: bool) -> None:
    if not has_nvrtc:
        pytest.skip("there is no NVRTC")
    calls = tmp_path / "calls.txt"
    calls.write_text("# a layer\nl2_normalize 64x256\n\nrelu 4096 --dtype bfloat16  # the activation\n")
    first = run("warmup", str(calls), "--arch", "sm_90a", "--json").json()
    assert (first["calls"], first["compiled"], first["from_disk"], first["failed"]) == (2, 2, 0, 0)
    again = run("warmup", "-", "--arch", "sm_90a", "--json", stdin=calls.read_text()).json()
    assert (again["compiled"], again["from_disk"]) == (0, 2)
    kernels = run("cache", "ls", "--json").json()["kernels"]
    assert len(kernels) == 2 and {k["arch"] for k in kernels} == {"sm_90a"}
    assert set(kernels[0]) == {"key", "signature", "arch", "bytes", "created", "used", "compile_ms"}
    assert all(k["signature"] in run("cache", "ls").out for k in kernels)
    stat = run("cache", "stat", "--json").json()
    assert stat["entries"] == 2 and stat["folder"] == str(tmp_path / "cache") and stat["problem"] == ""
    assert stat["bytes"] == sum(k["bytes"] for k in kernels)
    assert run("cache", "verify", "--json").json() == {"good": 2, "removed": []}
    damaged = tmp_path / "cache" / (kernels[0]["key"] + ".kernel")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    bad = run("cache", "verify", "--json")
    assert bad.code == 1 and bad.json() == {"good": 1, "removed": [damaged.name]}
    assert run("cache", "clear").out == "removed 1 kernel\n"
    assert run("cache", "ls", "--json").json() == {"kernels": []}


def test_warmup_compiles_both_kernels_of_a_call(run: Run, has_nvrtc: bool) -> None:
    if not has_nvrtc:
        pytest.skip("there is no NVRTC")
    done = run("warmup", "-", "--arch", "sm_90a", "--json", stdin="sum 256x1024\n").json()
    assert (done["calls"], done["compiled"], done["failed"]) == (1, 2, 0)
    assert {"reduce_row" in k["name"] for k in done["kernels"]} == {True, False}


def test_a_bundle_carries_kernels_to_a_machine_without_nvrtc(run: Run, tmp_path: Path, has_nvrtc: bool) -> None:
    if not has_nvrtc:
        pytest.skip("there is no NVRTC")
    run("warmup", "--call", "relu 8", "--arch", "sm_90a")
    run("warmup", "--call", "relu 8", "--arch", "sm_80")
    bundle = str(tmp_path / "bundle")
    assert run("cache", "export", bundle, "--arch", "sm_90a", "--json").json() == {"file": bundle, "exported": 1}
    there = {"TENSORCRAFT_CACHE_DIR": str(tmp_path / "other"), "TENSORCRAFT_NVRTC": "/nonexistent"}
    imported = run("cache", "import", bundle, "--json", **there)
    assert imported.json() == {"imported": 1, "already_there": 0}
    warm = run("warmup", "--call", "relu 8", "--arch", "sm_90a", "--json", **there).json()
    assert (warm["compiled"], warm["from_disk"], warm["failed"]) == (0, 1, 0)
    Path(bundle).write_bytes(Path(bundle).read_bytes()[:-1])
    assert run("cache", "import", bundle, **there).code == 2
    assert run("cache", "import", "/nonexistent", **there).code == 3


def test_warmup_reports_what_does_not_compile(run: Run) -> None:
    done = run("warmup", "--call", "relu 8", "--arch", "sm_90a", TENSORCRAFT_NVRTC="/nonexistent")
    assert done.code == 1 and "1 failed" in done.out and "NVRTC JIT compiler not available" in done.out


def test_a_hostile_cache_folder_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    assert run("cache", "stat").code == 1
    for name in ("verify", "clear"):
        done = run("cache", name)
        assert done.code == 3 and done.out == "" and "tensorcraft: " in done.err


def test_clangd_writes_one_file(run: Run, tmp_path: Path) -> None:
    written = run("clangd", "--arch", "sm_89")
    text = (tmp_path / ".clangd").read_text()
    assert written.code == 0 and written.out == "wrote .clangd for sm_89\n"
    flags = [line.strip().removeprefix("- ").strip("'") for line in text.splitlines()[2:]]
    assert text.splitlines()[:2] == ["CompileFlags:", "  Add:"]
    assert flags[:5] == ["-xcuda", "--cuda-gpu-arch=sm_89", "-std=c++20", "-Wall", "-Wextra"]
    assert flags[5] == "-isystem" and (Path(flags[6]) / "tensorcraft" / "device" / "base.h").exists()
    again = run("clangd")
    assert again.code == 2 and ".clangd exists; --force replaces it" in again.err
    assert run("clangd", "--force").code == 0
    if not Path("/dev/nvidiactl").exists():
        assert "--cuda-gpu-arch=sm_80" in (tmp_path / ".clangd").read_text()


def test_warmup_counts_what_a_full_disk_did_not_take(command: Path, environment: dict[str, str]) -> None:
    def take_no_kernel() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    calls = [option for n in (64, 65) for option in ("--call", f"relu {n} --dtype float32")]
    arguments = [command, "warmup", *calls, "--arch", "sm_90a", "--json"]
    full = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, check=False, timeout=120,
        preexec_fn=take_no_kernel, restore_signals=False,
    )  # fmt: skip
    said = json.loads(full.stdout)
    if any("NVRTC" in kernel["error"] for kernel in said["kernels"]):
        pytest.skip("no NVRTC")
    assert said["failed"] == len(said["kernels"]) > 0 and full.returncode == 1
    assert all("the cache folder does not take it" in kernel["error"] for kernel in said["kernels"])
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout)["failed"] == 0 and json.loads(done.stdout)["from_disk"] == 0


@pytest.mark.skipif("simt" not in tc.devices() or shutil.which("g++") is None, reason="no emulator or no g++")
def test_warmup_compiles_for_the_emulator(run: Run) -> None:
    call = ("warmup", "--call", "softmax 3x777 --dtype float16", "--device", "simt", "--json")
    first = run(*call).json()
    assert (first["arch"], first["failed"], first["compiled"] + first["from_disk"]) == ("simt", 0, 1), first
    again = run(*call).json()
    assert (again["compiled"], again["from_disk"]) == (0, 1)
    assert "softmax_in_registers_float16" in again["kernels"][0]["name"]
    assert any(again["kernels"][0]["name"] in entry["signature"] for entry in run("cache", "ls", "--json").json()["kernels"])

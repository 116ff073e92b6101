# SPDX-License-Identifier: Apache-2.0
"""control_path.py counts the files of a planted call, and check_budgets.py refuses one more."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_budgets
import control_path

PLAN = "tensorcraft/ops/pad/plan.h"
TILE_PLAN = "tensorcraft/ops/pad/tile_plan.h"
CALL = {"pad": ("pad", "by_warp")}


@pytest.fixture
def tree():
    """One operator, whose choice asks another header twice."""
    return {
        control_path.START: '#include "bound.hpp"\nobject call(int i) {\n  Call call(i);\n  op.run(call);\n}\n',
        "bindings/python/bound.hpp": '#include "tensorcraft/op/run.hpp"\nclass Call {\n  Call(int i) : i_(i) {}\n};\n',
        "tensorcraft/op/run.hpp": '#include "tensorcraft/op/launch.hpp"\nvoid run(const Call& c) {\n'
        "  def.check(c);\n  item.choose(p, gpu);\n  launch_plan(plan);\n}\n",
        "tensorcraft/op/launch.hpp": "void launch_plan(const Plan& plan);\n",
        "tensorcraft/op/launch.cpp": "void launch_plan(const Plan& plan) {\n  // launch(all)\n  launch(kernel, plan);\n}\n",
        "tensorcraft/op/unused.hpp": "void run(const Call& c) {}\n",
        "tensorcraft/ops/pad/pad.cpp": "Problem check(const Call& c) { return {}; }\nDefinition d{.check = check};\n",
        PLAN: f'#include "{TILE_PLAN}"\nChoice by_warp(const Params& p, Gpu g) {{\n  if (wide(p)) return {{}};\n'
        '  tall(p.m, p);\n  return small(p);\n}\nbool small(Params q) { return wide(q); }\n'
        'Rung kRungs[] = {{.name = "by_warp", .file = "00_by_warp.cuh", .choose = by_warp}};\n',
        TILE_PLAN: 'bool wide(const Params& p) { return p.n > 8; }\nbool tall(int m, const Params& p) { return "wide(p)"; }\n',
        "tensorcraft/ops/pad/00_by_warp.cuh": '#include "tensorcraft/ops/pad/row.cuh"\nstruct ByWarp {};\n',
        "tensorcraft/ops/pad/row.cuh": '#include "tensorcraft/ops/pad/params.h"\n#include "tensorcraft/device/math.cuh"\n',
        "tensorcraft/ops/pad/params.h": "struct Params {};\n",
        "tensorcraft/ops/pad/01_other.cuh": "struct Other {};\n",
    }  # fmt: skip


def test_a_path_has_the_files_that_control_goes_through_and_no_other(tree):
    assert control_path.path(tree, *CALL["pad"]) == {
        "python/tensorcraft/_ops.py": "python",
        control_path.START: "call",
        "bindings/python/bound.hpp": "call",
        "tensorcraft/op/run.hpp": "call",
        "tensorcraft/ops/pad/pad.cpp": "call",
        PLAN: "call",
        "tensorcraft/op/launch.cpp": "call",
        TILE_PLAN: "choice",
        "tensorcraft/ops/pad/00_by_warp.cuh": "kernel",
        "tensorcraft/ops/pad/row.cuh": "kernel",
    }


def test_a_parameter_returns_to_a_file_that_it_had_left(tree):
    stays = control_path.stays(tree, *CALL["pad"])
    assert stays == [PLAN, TILE_PLAN, PLAN, TILE_PLAN, PLAN]
    assert control_path.returns(stays) == 3


def test_a_function_is_entered_once_and_a_copy_of_the_parameter_counts(tree):
    tree[TILE_PLAN] += "bool deep(const Params& q) { return false; }\n"
    tree[PLAN] = tree[PLAN].replace("return small(p);", "Params other = p;\n  deep(other);\n  return small(p);")
    assert control_path.returns(control_path.stays(tree, *CALL["pad"])) == 5


def test_a_path_that_breaks_is_named(tree):
    tree["tensorcraft/op/run.hpp"] = tree["tensorcraft/op/run.hpp"].replace("launch_plan(plan)", "start(plan)")
    with pytest.raises(LookupError, match="no chain of calls"):
        control_path.path(tree, *CALL["pad"])


@pytest.mark.parametrize(
    "budget, reason",
    [
        ((10, 3), None),
        ((9, 3), "pad: 10 files from Python to its kernel, at most 9: python/"),
        ((10, 2), "pad: the choice's parameter returns 3 times, at most 2: tensorcraft/ops/pad/plan.h, "),
    ],
)
def test_budgets_hold_both_numbers(tree, monkeypatch, budget, reason):
    monkeypatch.setattr(control_path, "CALLS", CALL)
    monkeypatch.setattr(check_budgets, "CONTROL_PATHS", {"pad": budget})
    found = list(check_budgets.control_problems(tree))
    assert [line.startswith(reason) for line in found] == ([True] if reason else [])


def test_a_broken_path_is_a_problem_of_the_budgets(tree, monkeypatch):
    monkeypatch.setattr(control_path, "CALLS", CALL)
    monkeypatch.setattr(check_budgets, "CONTROL_PATHS", {"pad": (10, 3)})
    tree[PLAN] = tree[PLAN].replace("by_warp", "by_block")
    (found,) = check_budgets.control_problems(tree)
    assert found == "scripts/control_path.py: pad: no plan header of tensorcraft/ops/pad/ has a row of by_warp"


def test_each_call_that_is_counted_has_a_budget():
    assert check_budgets.CONTROL_PATHS.keys() == control_path.CALLS.keys()

# SPDX-License-Identifier: Apache-2.0
"""tc.Scheduler: functions that share a device."""

import asyncio
import concurrent.futures
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import tensorcraft as tc


def test_a_task_gives_what_its_function_returns(device: str) -> None:
    x = tc.asarray(np.arange(4, dtype=np.float32), device=device)
    with tc.Scheduler(device, streams=2, max_running=2) as s:
        assert s.device == device
        first = s.submit(tc.add, x, x)
        second = s.submit(lambda: tc.multiply(first.result(0), x), after=[first], stream=1)
        np.testing.assert_array_equal(np.asarray(second.result(30)), [0, 2, 8, 18])
        assert first.done() and first.state == "completed" and not first.running()
        assert s.statistics()["completed"] == 2


def test_what_a_function_raises_is_the_tasks_and_of_those_after_it(device: str) -> None:
    with tc.Scheduler(device) as s:
        hold = threading.Event()
        gate = s.submit(hold.wait, 20)
        broken = s.submit(lambda: {}["missing"], after=[gate])
        behind = s.submit(tc.exp, [1.0], after=[broken])
        hold.set()
        with pytest.raises(KeyError, match="missing"):
            broken.result(30)
        assert isinstance(behind.exception(30), tc.errors.Cancelled) and behind.state == "failed"
        with pytest.raises(ValueError, match="a task that it comes after failed or was cancelled"):
            s.submit(tc.exp, [1.0], after=[broken])
        assert s.submit(int, "7").result(30) == 7


def test_classes_and_policies_order_what_waits() -> None:
    order: list[str] = []
    with tc.Scheduler("cpu") as s:
        hold = threading.Event()
        gate = s.submit(hold.wait, 20)
        while not gate.running():
            pass
        tasks = [
            s.submit(order.append, "flood", qos="best_effort"),
            s.submit(order.append, "plain"),
            s.submit(order.append, "low", policy="priority", priority=1),
            s.submit(order.append, "high", policy="priority", priority=2),
            s.submit(order.append, "served", qos="guaranteed"),
        ]
        assert all(t.state == "pending" for t in tasks)
        hold.set()
        for task in tasks:
            task.result(30)
        queued = [d for d in s.decisions() if d.task == tasks[0].id]
    assert order == ["served", "high", "low", "plain", "flood"]
    assert [d[2:] for d in queued] == [("queue", "slots"), ("admit", "none")]


def test_a_pending_task_is_cancelled_at_once_and_the_end_cancels_the_rest() -> None:
    s = tc.Scheduler("cpu")
    hold = threading.Event()
    gate = s.submit(hold.wait, 20)
    first, second = s.submit(int), s.submit(int)
    assert first.cancel() and first.cancelled() and first.state == "cancelled"
    threading.Timer(0.05, hold.set).start()
    s.close()
    assert gate.result(0) is True and second.cancelled()
    assert not gate.cancel()
    with pytest.raises(ValueError, match="Scheduler: it is closed; make another one"):
        s.submit(int)
    s.close()


def endless(device: str, made: list[int], begun: threading.Event) -> None:
    """Calls an operator until that is refused; made[0] counts the calls."""
    x = tc.asarray([1.0], device=device)
    while True:
        tc.exp(x)
        made[0] += 1
        begun.set()


def test_a_cancelled_task_launches_nothing_more(device: str) -> None:
    with tc.Scheduler(device) as s:
        made, begun = [0], threading.Event()
        task = s.submit(endless, device, made, begun)
        assert begun.wait(30) and task.cancel()
        at_cancel = made[0]
        with pytest.raises(concurrent.futures.CancelledError):
            task.result(30)
        assert made[0] <= at_cancel + 1, "calls after cancel() returned"  # one may have been under way
        assert task.state == "cancelled"
        np.testing.assert_array_equal(np.asarray(s.submit(tc.exp, [0.0]).result(30)), [1.0])


def test_a_coroutine_that_is_cancelled_cancels_its_task(device: str) -> None:
    async def give_up(s: tc.Scheduler) -> int:
        made, begun = [0], threading.Event()

        async def wait() -> None:
            await s.submit(endless, device, made, begun)

        waiting = asyncio.create_task(wait())
        assert await asyncio.to_thread(begun.wait, 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        at_cancel = made[0]
        await asyncio.to_thread(s.close)
        return made[0] - at_cancel

    assert asyncio.run(give_up(tc.Scheduler(device))) <= 1


def test_close_waits_no_longer_than_it_may() -> None:
    s, hold = tc.Scheduler("cpu"), threading.Event()
    stuck = s.submit(hold.wait, 60)
    while not stuck.running():
        pass
    start = time.monotonic()
    assert s.close(timeout=0.1) is False
    assert 0.1 <= time.monotonic() - start < 20
    assert s.close(0) is False
    with pytest.raises(ValueError, match="it is closed"):
        s.submit(int)
    for wrong in (-1, float("nan"), 1e10):
        with pytest.raises(ValueError, match="timeout must be 0 to 1e9 seconds"):
            s.close(wrong)
    with pytest.raises(TypeError, match="timeout"):
        s.close("soon")  # type: ignore[arg-type]
    hold.set()
    assert s.close(20) is True and stuck.result(0) is True


@pytest.mark.parametrize(
    "end", ["s.close()", "with s: pass", "sys.exit()", "del s, t; sys.exit()"], ids=["close", "with", "exit", "dropped"]
)
def test_an_interrupt_ends_the_wait_for_a_stuck_task(end: str) -> None:
    program = f"""
import signal, sys, threading, time, tensorcraft as tc
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
s, begun = tc.Scheduler("cpu"), threading.Event()
t = s.submit(lambda: (begun.set(), time.sleep(3600)))
begun.wait()
print("waits", flush=True)
{end}
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None and run.stdout.readline() == "waits\n"
        begin, said = time.monotonic(), ""
        while run.poll() is None and time.monotonic() < begin + 30:
            time.sleep(0.5)  # the program may not have come to its wait, and its exit waits again
            run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=30)[1]
    finally:
        run.kill()
    assert time.monotonic() < begin + 30 and "KeyboardInterrupt" in said, said


def test_tasks_can_be_awaited() -> None:
    async def all_of(s: tc.Scheduler) -> list[int]:
        return list(await asyncio.gather(*(s.submit(lambda n=n: n * n) for n in range(20))))

    with tc.Scheduler("cpu", streams=2, max_running=2) as s:
        assert asyncio.run(all_of(s)) == [n * n for n in range(20)]


def test_memory_bounds_what_runs_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1

    with tc.Scheduler("cpu", memory=100, streams=4, max_running=4) as s:
        for task in [s.submit(work, memory=40) for _ in range(20)]:
            task.result(30)
        assert s.statistics()["reserved_bytes"] == 0
        with pytest.raises(tc.OutOfMemory, match="more memory than the scheduler has in all"):
            s.submit(work, memory=101)
    assert most == 2


def test_what_is_wrong_is_refused() -> None:
    for options, kind, said in [
        ({"max_running": 0}, ValueError, "max_running must be 1 to"),
        ({"memory": -1}, ValueError, "memory must be at least 0"),
        ({"memory": 1 << 60}, ValueError, "memory must be at most"),
        ({"shares": {0: 2.0}}, ValueError, "share"),
        ({"window": -1.0}, ValueError, "window must be 0 to 1e9 seconds"),
        ({"streams": "two"}, TypeError, "streams"),
    ]:
        with pytest.raises(kind, match=said):
            tc.Scheduler("cpu", **options)
    with tc.Scheduler("cpu") as s, tc.Scheduler("cpu") as other:
        with pytest.raises(ValueError, match="qos must be one of best_effort, burstable, guaranteed; got first"):
            s.submit(int, qos="first")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="name, policy and qos are text"):
            s.submit(int, qos=3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="belongs to another scheduler"):
            s.submit(int, after=[other.submit(int)])
        with pytest.raises(TypeError, match="expected tasks of this scheduler, got 3"):
            s.submit(int, after=[3])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="priority must fit 32 bits"):
            s.submit(int, priority=1 << 40)
        for option in ("stream", "priority", "memory", "traffic"):
            with pytest.raises(TypeError, match=f"Scheduler: {option} must be an integer, got NoneType"):
                s.submit(tc.softmax, [1.0, 2.0], **{option: None})  # type: ignore[arg-type]
        assert s.statistics()["pending"] == 0
    for option in ("max_running", "max_pending", "streams"):
        with pytest.raises(TypeError, match=f"Scheduler: {option} must be an integer, got NoneType"):
            tc.Scheduler("cpu", **{option: None})  # type: ignore[arg-type]


def test_nothing_is_kept_of_a_task_that_ended() -> None:
    class Big:
        pass

    with tc.Scheduler("cpu") as s:
        value = Big()
        gone = weakref.ref(value)
        task = s.submit(lambda x: None, value)
        task.result(30)
        del value, task
        for _ in range(100):
            gc.collect()
            if gone() is None:
                break
            threading.Event().wait(0.01)
        assert gone() is None


def test_a_program_may_end_with_tasks_in_flight() -> None:
    program = """
import threading, time, tensorcraft as tc
s = tc.Scheduler("cpu")
for i in range(50): s.submit(time.sleep, 0.01)
print("end", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_scheduler_may_go_without_a_close() -> None:
    program = """
import threading, time, tensorcraft as tc
tc.Scheduler("cpu").submit(time.sleep, 0.05)
s = tc.Scheduler("cpu")
done = s.submit(lambda keep: 7, s)  # the task has the last reference
del s
for i in range(200): tc.Scheduler("cpu").submit(int)
try: print(done.result(20))
except BaseException as error: print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout in ("7\n", "CancelledError\n")


def test_a_task_cannot_close_its_own_scheduler() -> None:
    with tc.Scheduler("cpu") as s:
        with pytest.raises(ValueError, match="close was called by one of its own tasks"):
            s.submit(s.close).result(20)
        assert s.submit(lambda: tc.Scheduler("cpu").close()).result(20) is True


def test_a_forked_child_has_none_of_its_threads() -> None:
    program = """
import os, sys, threading, tensorcraft as tc
s = tc.Scheduler("cpu")
hold = threading.Event()
s.submit(hold.wait, 20), s.submit(int)
if os.fork() == 0:
    try: s.submit(int)
    except NotImplementedError as error: print(error, flush=True)
    sys.exit(0)
code = os.wait()[1]
hold.set()
print("child", code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.endswith("child 0\n"), done.stdout + done.stderr
    assert "it was made before this process was forked" in done.stdout


def test_callbacks_neither_close_nor_end_the_program() -> None:
    program = """
import sys, time, tensorcraft as tc
s = tc.Scheduler("cpu", patience=1, window=1)
a = s.submit(time.sleep, 0.2)
a.add_done_callback(lambda f: s.close())       # refused, and logged by concurrent.futures
t, u = s.submit(int, run_estimate=1), None
u = s.submit(int, after=[t])
t.add_done_callback(lambda f: sys.exit(3))
assert t.cancel()
try: u.result(20)
except BaseException as error: print(type(error).__name__)
b = s.submit(time.sleep, 0.1)
b.set_result(1)
print(a.result(20), b.result(20), s.submit(int, "7").result(20), s.submit(next, iter(())).exception(20).__class__.__name__)
s.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.endswith("None 1 7 RuntimeError\n"), done.stdout + done.stderr
    assert "close was called by one of its own tasks or their callbacks" in done.stderr


def test_a_thread_may_close_it_while_others_are_inside() -> None:
    for _ in range(20):
        s = tc.Scheduler("cpu", streams=2, max_running=2)
        began = threading.Barrier(4)
        wrong: list[ValueError] = []

        def use(s: tc.Scheduler = s, began: threading.Barrier = began, wrong: list[ValueError] = wrong) -> None:
            began.wait(20)
            try:
                while True:
                    s.submit(int).cancel()
                    s.statistics()
            except ValueError as error:
                if "it is closed" not in str(error):
                    wrong.append(error)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        began.wait(20)
        s.close()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert not wrong


def test_closed_schedulers_leave_no_threads() -> None:
    code = """
import os
import tensorcraft as tc
tc.Scheduler("cpu").close()
before = len(os.listdir("/proc/self/task"))
for _ in range(200):
    s = tc.Scheduler("cpu", streams=2)
    s.submit(int)
    s.close()
print(len(os.listdir("/proc/self/task")) - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert int(run.stdout) <= 0


def test_dropped_schedulers_leave_no_threads() -> None:
    code = """
import os, time
import tensorcraft as tc
tc.Scheduler("cpu").submit(int).result(30)
def drop():
    for _ in range(50):
        tc.Scheduler("cpu").submit(int)
drop()
end = time.monotonic() + 20
while (count := len(os.listdir("/proc/self/task"))) > 8 and time.monotonic() < end:
    time.sleep(0.01)
print(count)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert int(run.stdout) <= 8

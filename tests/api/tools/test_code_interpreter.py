"""Code interpreter in responses: real code in the sandbox, its outputs and files, the next calls, failures."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.core.files.storage import FileSystemStorage
from django.test import override_settings
from django.utils import timezone

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.models import Container, ContainerFile, Event, Response
from responses_app.protocol.reducer import fold
from responses_app.runs.ids import new_id
from responses_app.sandbox.base import ContainerExpired
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import packages
from responses_app.sandbox.options import RunnerOptions
from responses_app.tools.code_interpreter import containers as interpreter_containers
from responses_app.tools.code_interpreter import sandboxes
from responses_app.tools.code_interpreter.containers import (
    ENDED_BEFORE_STORED,
    LOST_VARIABLES,
    ContainerProblem,
    ContainerSession,
)
from responses_app.wire.sse import HEARTBEAT
from tests.support.api.case import bare, record_text
from tests.support.runs.server_tools import ConfiguredToolsCase, answer, same, shows
from tests.support.sandbox.runner import Runner, runner
from tests.support.store.file_storage import file_storage_settings

INCLUDE = ["code_interpreter_call.outputs"]
TOOL: dict[str, Any] = {"type": "code_interpreter", "container": {"type": "auto"}}


@pytest.fixture(scope="module")
def code_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("sandbox")) as started:
        yield started


def code(text: str) -> str:
    """A call of gpt-oss's tool `python`."""
    return f"<|channel|>analysis to=python code<|message|>{text}<|call|>"


@pytest.mark.usefixtures("class_runner")
class CodeInterpreterTest(ConfiguredToolsCase):
    url: str
    code_runner: Runner
    folder: Path

    @pytest.fixture(autouse=True)
    def class_runner(self, code_runner: Runner, tmp_path: Any) -> Iterator[None]:
        type(self).code_runner, type(self).url, type(self).folder = code_runner, code_runner.url, tmp_path
        with override_settings(RESPONSES_SANDBOX_URL=code_runner.url, **file_storage_settings(tmp_path)):
            yield

    async def run_code(self, text: str, *then: Recording, **body: Any) -> list[dict[str, Any]]:
        """Let the model write the code `text`, then `then` or a short answer. Return the events."""
        async with self.serving(record_text(code(text)), *(then or [record_text(answer("Done."))])) as client:
            return await self.stream(client, **{"tools": [TOOL], "include": INCLUDE, **body})

    async def test_code_runs_and_its_output_reaches_the_model(self) -> None:
        events = await self.run_code("print(6 * 7)\n'end'", record_text(answer("42."), match=shows("42", "'end'")))
        last = events[-1]["response"]
        assert last["status"] == "completed", last
        item = last["output"][0]
        assert item["outputs"] == [{"type": "logs", "logs": "42\n'end'"}]
        assert (item["type"], item["status"], item["code"]) == ("code_interpreter_call", "completed", "print(6 * 7)\n'end'")
        kinds = [event["type"] for event in events if "code_interpreter" in event["type"]]
        assert kinds[0] == "response.code_interpreter_call.in_progress"
        assert kinds[-3:] == [
            "response.code_interpreter_call_code.done",
            "response.code_interpreter_call.interpreting",
            "response.code_interpreter_call.completed",
        ]
        assert fold(events) == last

    async def test_outputs_are_null_without_the_include(self) -> None:
        events = await self.run_code("print(1)", record_text(answer("1."), match=shows("1")), include=[])
        assert events[-1]["response"]["output"][0]["outputs"] is None

    @pytest.mark.slow
    async def test_call_that_waits_for_packages_is_in_progress_and_heartbeats_flow(self) -> None:
        folder = self.folder
        packages.write_state(folder, InstallationState("installing", time.time()))
        url = self.enterContext(runner(folder, with_packages=True, packages=folder)).url
        self.enterContext(override_settings(RESPONSES_SANDBOX_URL=url, RESPONSES_HEARTBEAT=0.05))
        recordings = record_text(code("import numpy\nnumpy.answer")), record_text(answer("42."), match=shows("42"))
        async with self.serving(*recordings) as client:
            chunks = aiter((await self.post(client, stream=True, tools=[TOOL], include=INCLUDE)).streaming_content)
            seen = b""
            while HEARTBEAT * 2 not in seen:
                seen += await anext(chunks)
            # The code waits, so nothing but heartbeats comes until the gate opens.
            assert b"response.code_interpreter_call.in_progress" in seen
            assert b"response.code_interpreter_call.completed" not in seen
            site = packages.packages_folder(folder) / "fresh"
            site.mkdir()
            (site / "numpy.py").write_text("answer = 42")
            site.rename(packages.packages_folder(folder) / "shared" / "site")
            seen += b"".join([chunk async for chunk in chunks])
        assert b"response.code_interpreter_call.completed" in seen
        assert b"response.completed" in seen

    async def test_variables_stay_for_the_next_response_of_the_chain(self) -> None:
        recordings = [code("x = 20"), answer("Set."), code("x + 3"), answer("23.")]
        async with self.serving(*map(record_text, recordings)) as client:
            first = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            second = await self.stream(client, tools=[TOOL], include=INCLUDE, previous_response_id=first["id"])
        item = second[-1]["response"]["output"][0]
        assert item["outputs"] == [{"type": "logs", "logs": "23"}]
        assert item["container_id"] == first["output"][0]["container_id"]

    async def test_call_that_is_sent_back_without_its_container_is_read(self) -> None:
        """Blocks of Messages do not name the container."""
        tool = {"type": "code_execution_20250825", "name": "code_execution"}
        messages = [{"role": "user", "content": "Hi"}]
        recordings = [
            record_text(code("40 + 2")),
            record_text(answer("42.")),
            record_text(answer("Yes."), match=shows("40 + 2")),
        ]
        async with self.serving(*recordings) as client:
            for _ in range(2):
                data = orjson.dumps({"model": "m", "max_tokens": 400, "tools": [tool], "messages": messages})
                made = await client.post("/v1/messages", data, content_type="application/json")
                assert made.status_code == 200, made.content
                content = orjson.loads(made.content)["content"]
                messages += [{"role": "assistant", "content": content}, {"role": "user", "content": "Sure?"}]
        assert content == [{"type": "text", "text": "Yes."}]

    async def test_container_that_ends_before_its_code_runs_is_started_again(self) -> None:
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_ended", client, new_id)

        def end() -> None:
            """End the container between its start and the run, from another thread."""
            thread = Thread(target=self.code_runner.use, args=[lambda other: other.delete("cntr_ended")])
            thread.start()
            thread.join()

        await session.run("cntr_ended", "x = 1; open('a.txt', 'w').write('kept')", lambda: None)
        result, notices = await session.run("cntr_ended", "open('a.txt').read()", end)
        await client.delete("cntr_ended")
        await session.close()
        assert (result.value, result.error) == ("'kept'", None)
        assert notices == [LOST_VARIABLES]

    async def test_container_that_is_deleted_before_its_code_runs_is_not_made_again(self) -> None:
        now = timezone.now()
        row = await Container.objects.acreate(
            uid="cntr_gone", project=self.key.project, name="gone", created_at=now, last_active_at=now
        )
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, row.uid, "cntr_fallback", client, new_id)

        deletions: list[asyncio.Task[Any]] = []

        def delete() -> None:
            """Delete the container between its start and the run, and the row before the next query."""
            thread = Thread(target=self.code_runner.use, args=[lambda other: other.delete(row.uid)])
            thread.start()
            thread.join()
            deletions.append(asyncio.create_task(Container.objects.filter(uid=row.uid).adelete()))

        with self.assertRaisesRegex(ContainerProblem, "'cntr_gone' was deleted"):
            await session.run(row.uid, "1", delete)
        with self.assertRaises(ContainerExpired):
            await client.status(row.uid)
        await session.close()

    async def run_and_change(self, code_: str, change: Callable[[SandboxClient], Any]) -> tuple[str, list[str], set[str]]:
        """Run code, and let another client change the container after the run, before the first file is stored.

        Return the value, the notices and the paths of stored files.
        """
        client = SandboxClient(self.url)
        changes = [change]

        def change_and_make_id(prefix: str) -> str:
            if changes:
                thread = Thread(target=self.code_runner.use, args=[changes.pop()])
                thread.start()
                thread.join()
            return new_id(prefix)

        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_changed", client, change_and_make_id)
        result, notices = await session.run("cntr_changed", code_, lambda: None)
        await client.delete("cntr_changed")
        await session.close()
        return str(result.value), notices, set(session.citable)

    async def test_file_that_other_code_deletes_before_it_is_stored_fails_no_call(self) -> None:
        made = await self.run_and_change(
            "open('a', 'w').write('1'); open('b', 'w').write('2')", lambda other: other.delete_file("cntr_changed", "a")
        )
        assert made == ("1", [], {"/mnt/data/b"})

    async def test_file_that_grows_before_it_is_stored_fails_no_call(self) -> None:
        with patch.object(interpreter_containers, "MAX_FILE_BYTES", 3):
            made = await self.run_and_change(
                "open('a', 'w').write('1'); open('b', 'w').write('2')",
                lambda other: other.put_file("cntr_changed", "a", b"long"),
            )
        assert made == ("1", ["/mnt/data/a is too long to be offered for download."], {"/mnt/data/b"})

    async def test_container_that_ends_before_its_files_are_stored_fails_no_call(self) -> None:
        made = await self.run_and_change("open('a', 'w').write('1')", lambda other: other.delete("cntr_changed"))
        assert made == ("1", [ENDED_BEFORE_STORED], set())

    async def test_files_that_cannot_be_stored_are_named_and_the_others_are_stored(self) -> None:
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_deep", client, new_id)
        folders = "import os; os.makedirs('/'.join('a' * 40)); os.makedirs('/'.join(['long' * 50] * 3))"
        written = f"{folders}\nfor path in ('a/' * 40, ('long' * 50 + '/') * 3, 'z'): open(path + 'x', 'w').close()"
        written += "\nopen(b'\\xff', 'w').close()"
        result, notices = await session.run("cntr_deep", written, lambda: None)
        await client.delete("cntr_deep")
        row = await Container.objects.aget(uid="cntr_deep")
        await ContainerFile.objects.filter(container=row).aupdate(path="/mnt/data/" + "é" * 200)
        again, later = await session.run("cntr_deep", "1", lambda: None)
        await client.delete("cntr_deep")
        await session.close()
        assert (result.error, again.value, list(session.citable)) == (None, "1", ["/mnt/data/zx"])
        assert notices[0] == "Not offered for download, as the names are not UTF-8: /mnt/data/\\xff."
        assert [notice.partition(" ")[2] for notice in notices[1:]] == [
            "is in too many folders to be offered for download.",
            "has too long a path to be offered for download.",
        ]
        assert "a name may have 255 bytes" in later[-1]

    async def test_files_and_folders_of_the_same_path_are_named_after_a_restart(self) -> None:
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_same", client, new_id)
        write = "open({!r}, 'w').write('1')"
        for unstored, code_ in (
            ("import os", write.format("out")),
            ("os.unlink('out'); os.mkdir('out')", write.format("out/new")),
            ("os.mkdir('in')", write.format("in/old")),
            ("os.unlink('in/old'); os.rmdir('in')", write.format("in")),
        ):
            # As of a call whose process ends before it stores what the code has changed.
            await client.create("cntr_same")
            await client.run("cntr_same", unstored)
            await session.run("cntr_same", code_, lambda: None)
        await client.delete("cntr_same")
        _, notices = await session.run("cntr_same", "1", lambda: None)
        await client.delete("cntr_same")
        await session.close()
        reason = "is not in the container: an earlier file of the container is a part of the path"
        assert [notice.partition(f" {reason}")[0] for notice in notices[1:]] == ["/mnt/data/out/new", "/mnt/data/in"]

    async def test_files_for_which_a_restarted_container_has_no_space_are_named(self) -> None:
        client = SandboxClient(self.enterContext(runner(self.folder, RunnerOptions(disk_mib=4))).url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_small", client, new_id)
        write = "open({!r}, 'wb').write(bytes(3 << 20))"
        await session.run("cntr_small", write.format("a"), lambda: None)
        # As of a call whose process ends before it stores what the code has changed.
        await client.run("cntr_small", "import os; os.unlink('a')")
        await session.run("cntr_small", write.format("b"), lambda: None)
        await client.delete("cntr_small")
        result, notices = await session.run("cntr_small", "import os; os.listdir()", lambda: None)
        await session.close()
        assert result.value == "['a']"
        assert notices == [LOST_VARIABLES, "/mnt/data/b is not in the container, which has no space for the file."]

    async def test_files_beyond_the_quota_are_named_and_the_others_are_stored(self) -> None:
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_full", client, new_id)
        written = "for name, size in (('a', 400), ('b', 800), ('c', 400)): open(name, 'wb').write(bytes(size * 1024))"
        with override_settings(RESPONSES_FILES_MIB_PER_PROJECT=1):
            result, notices = await session.run("cntr_full", written, lambda: None)
            rewritten, none = await session.run("cntr_full", "open('a', 'wb').write(bytes(600 * 1024))", lambda: None)
        with override_settings(RESPONSES_MIN_FREE_MIB=1024 * 1024 * 1024):
            _, full = await session.run("cntr_full", written.replace("'b'", "'d'"), lambda: None)
        await client.delete("cntr_full")
        await session.close()
        assert (result.error, rewritten.error, none) == (None, None, [])
        assert [notice.split(". The ")[0] for notice in notices] == ["Not stored, and not offered for download: /mnt/data/b"]
        assert "may have 1 MiB together" in notices[0]
        paths = "/mnt/data/a, /mnt/data/c, /mnt/data/d"
        assert [notice.split(". The ")[0] for notice in full] == [f"Not stored, and not offered for download: {paths}"]
        sizes = {file.path: file.bytes async for file in ContainerFile.objects.all()}
        assert sizes == {"/mnt/data/a": 600 * 1024, "/mnt/data/c": 400 * 1024}
        assert sorted(session.citable) == ["/mnt/data/a", "/mnt/data/c"]

    async def test_storage_that_is_full_or_away_is_named_and_loses_no_result(self) -> None:
        client = SandboxClient(self.url)
        session = ContainerSession(self.key.project, {"type": "auto"}, "cntr_away", client, new_id)
        await session.run("cntr_away", "open('a', 'w').write('1')", lambda: None)
        for problem, words in ((errno.ENOSPC, "is full"), (errno.EROFS, "does not answer")):
            with (
                patch.object(FileSystemStorage, "_save", side_effect=OSError(problem, "broken")),
                self.assertLogs("responses.tools"),
            ):
                result, notices = await session.run("cntr_away", "open('b', 'w').write('22')", lambda: None)
            assert (result.value, len(notices)) == ("2", 1)
            assert "Not stored, and not offered for download: /mnt/data/b. The storage of files " + words in notices[0]
        await client.delete("cntr_away")
        code_ = "import os; os.listdir()"
        with (
            patch.object(FileSystemStorage, "_open", side_effect=OSError(errno.EIO, "broken")),
            self.assertRaisesRegex(ContainerProblem, "The code was not run, as the container cannot get its files"),
            self.assertLogs("responses.tools"),
        ):
            await session.run("cntr_away", code_, lambda: None)
        result, _ = await session.run("cntr_away", code_, lambda: None)
        assert result.value == "['a']", "no later call sees a container that lacks files"
        await client.delete("cntr_away")
        with patch.object(FileSystemStorage, "_open", side_effect=FileNotFoundError):
            result, notices = await session.run("cntr_away", code_, lambda: None)
        assert (result.value, "/mnt/data/a is not in the container: the storage" in notices[-1]) == ("[]", True)
        await client.delete("cntr_away")
        await session.close()

    async def test_model_reads_why_a_file_or_a_container_is_refused_and_the_response_goes_on(self) -> None:
        written = "open('a', 'w').write('x')"
        with override_settings(RESPONSES_FILES_MIB_PER_PROJECT=0):
            events = await self.run_code(written, record_text(answer("Full."), match=shows("may have 0 MiB together")))
        call = events[-1]["response"]["output"][0]
        assert (events[-1]["response"]["status"], call["status"]) == ("completed", "completed")
        with override_settings(RESPONSES_CONTAINERS_PER_PROJECT=1):
            events = await self.run_code(written, record_text(answer("Many."), match=shows("its limit of containers (1).")))
        call = events[-1]["response"]["output"][0]
        assert (events[-1]["response"]["status"], call["status"]) == ("completed", "failed")
        assert await Container.objects.acount() == 1

    async def test_written_files_can_be_downloaded(self) -> None:
        async with self.serving(record_text(code("open('a.txt', 'w').write('hello')")), record_text(answer("Done."))) as client:
            item = (await self.stream(client, tools=[TOOL]))[-1]["response"]["output"][0]
            folder = f"/v1/containers/{item['container_id']}/files"
            [file] = orjson.loads((await client.get(folder)).content)["data"]
            assert (file["path"], file["bytes"], file["source"]) == ("/mnt/data/a.txt", 5, "assistant")
            content: Any = await client.get(f"{folder}/{file['id']}/content")
            data = b"".join([chunk async for chunk in content])
        assert data == b"hello"

    async def test_links_to_written_files_are_cited(self) -> None:
        events = await self.run_code(
            "open('a.txt', 'w').write('hello')", record_text(answer("Here: [a.txt](sandbox:/mnt/data/a.txt)."))
        )
        call, message = events[-1]["response"]["output"]
        [part] = message["content"]
        [annotation] = part["annotations"]
        cited = part["text"][annotation["start_index"] : annotation["end_index"]]
        assert "sandbox:/mnt/data/a.txt" in cited
        file = await ContainerFile.objects.aget()
        assert annotation == annotation | {
            "type": "container_file_citation",
            "container_id": call["container_id"],
            "file_id": file.uid,
            "filename": "a.txt",
        }
        assert fold(events) == events[-1]["response"]

    async def test_new_owner_cites_no_file_that_a_later_call_writes(self) -> None:
        link = "[a.txt](sandbox:/mnt/data/a.txt)"
        preamble = f"<|channel|>commentary<|message|>I write {link}.<|end|><|start|>assistant"
        first = record_text(
            preamble + code("open('a.txt', 'w').write('hello')"), match=lambda prompt: not shows("written")(prompt)
        )
        self.engine = ReplayEngine([first, record_text(answer(f"Here: {link}."), match=shows("written"))], loop=True)
        async with self.serving() as client:
            events = bare(await self.stream(client, tools=[TOOL], temperature=0.0))
            uid = events[0]["response"]["id"]
            response = await Response.objects.aget(uid=uid)
            saved = [one async for one in Event.objects.filter(response=response).order_by("number")]
            await self.hub.close()
            await self.engine.start()
            message = max(event["output_index"] for event in events if "output_index" in event)
            begin = next(at for at, event in enumerate(events) if event.get("output_index") == message)
            # The end of an append.
            number = next(one.number for one in saved if one.number >= begin and one.tokens is not None)
            await self.cut(response.pk, number, saved)
            continued = await self.continued(client, uid)
        before, _, after = (item.get("content") for item in events[-1]["response"]["output"])
        assert [len(content[0]["annotations"]) for content in (before, after)] == [0, 1]
        assert same(continued) == same(events)

    async def test_error_of_the_code_is_an_output(self) -> None:
        events = await self.run_code("1 / 0", record_text(answer("Oh."), match=shows("ZeroDivisionError")))
        item = events[-1]["response"]["output"][0]
        assert "ZeroDivisionError" in item["outputs"][0]["logs"]

    async def test_container_that_expired_is_refused_before_anything_runs(self) -> None:
        now = timezone.now()
        row = await Container.objects.acreate(
            uid="cntr_old", project=self.key.project, name="old", created_at=now, last_active_at=now - timedelta(hours=1)
        )
        async with self.serving() as client:
            response = await self.post(client, tools=[{**TOOL, "container": row.uid}])
        error = orjson.loads(response.content)["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "container_expired", "tools[0].container")

    async def test_files_of_an_expired_container_are_still_there_after_a_restart(self) -> None:
        recordings = [
            code("open('a.txt', 'w').write('hello')"),
            answer("Written."),
            code("open('a.txt').read()"),
            answer("Read."),
        ]
        async with self.serving(*map(record_text, recordings)) as client:
            first = (await self.stream(client, tools=[TOOL]))[-1]["response"]
            uid = first["output"][0]["container_id"]
            await sandboxes.end_container(await Container.objects.aget(uid=uid))
            second = await self.stream(client, tools=[TOOL], include=INCLUDE, previous_response_id=first["id"])
        item = second[-1]["response"]["output"][0]
        assert (item["container_id"], item["outputs"]) == (uid, [{"type": "logs", "logs": "'hello'"}])
        assert await ContainerFile.objects.acount() == 1

    async def test_end_of_the_sandbox_during_a_call_is_in_the_log_and_read_by_the_model(self) -> None:
        def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        path = self.folder / "ending.sock"
        ending = await asyncio.start_unix_server(end, path)
        with override_settings(RESPONSES_SANDBOX_URL=f"unix:{path}"), self.assertLogs("responses.tools", "WARNING") as log:
            reply = record_text(answer("It ended."), match=shows("the sandbox ended"))
            last = (await self.run_code("print(1)", reply))[-1]["response"]
        ending.close()
        assert (last["status"], last["output"][0]["status"]) == ("completed", "failed")
        assert log.records[0].getMessage() == f"{last['id']}: code interpreter: the sandbox ended during the call"

    async def test_request_with_the_code_interpreter_off_names_the_setting(self) -> None:
        with override_settings(RESPONSES_CODE_INTERPRETER="off"):
            async with self.serving() as client:
                response = await self.post(client, tools=[TOOL])
        assert response.status_code == 400
        assert "RESPONSES_CODE_INTERPRETER" in orjson.loads(response.content)["error"]["message"]

    async def test_request_without_a_sandbox_names_the_setting(self) -> None:
        with override_settings(RESPONSES_SANDBOX_URL=""):
            async with self.serving() as client:
                response = await self.post(client, tools=[TOOL])
        assert response.status_code == 400
        assert "RESPONSES_SANDBOX_URL" in orjson.loads(response.content)["error"]["message"]

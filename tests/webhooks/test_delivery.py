"""Delivery of webhooks: signatures, retries to a day, redirects, 410, checked addresses, fairness, and lost processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import openai
import pytest
from django.conf import settings
from django.test import override_settings

from responses_app.models import DeliveryStatus, WebhookDelivery, WebhookEndpoint
from responses_app.runs import maintenance
from responses_app.store import webhooks
from responses_app.store.cluster.clock import shared_clock
from responses_app.store.db import call_in_thread
from responses_app.webhooks import sender, signatures
from responses_app.webhooks.delivery import deliver_due, deliver_webhooks
from responses_app.webhooks.endpoints import new_endpoint, rotate
from tests.support.waiting import eventually
from tests.support.webhook_receiver import WebhookReceiver, webhook_receiver

pytestmark = pytest.mark.django_db(transaction=True)
ALL = ["response.completed", "response.failed", "response.incomplete", "response.cancelled"]


class DateClock:
    """Clock that stands still until a test moves the time."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> DateClock:
    return DateClock()


@pytest.fixture(autouse=True)
def _local_receivers() -> Iterator[None]:
    with override_settings(RESPONSES_WEBHOOK_PRIVATE_HOSTS=frozenset({"127.0.0.1"})):
        yield


def make_endpoint(url: str, project: str = "p") -> tuple[WebhookEndpoint, str]:
    row, secret = new_endpoint(project, name="hook", url=url, event_types=ALL)
    webhooks.create(row)
    return row, secret


def make_delivery(endpoint: WebhookEndpoint, due_at: datetime, name: str = "1") -> WebhookDelivery:
    return WebhookDelivery.objects.create(
        uid=f"wh_{endpoint.pk}_{name}",
        endpoint=endpoint,
        event_uid=f"evt_{name}",
        event_type="response.completed",
        response_uid=f"resp_{name}",
        created_at=due_at,
        due_at=due_at,
    )


def deliver(clock: DateClock) -> int:
    return asyncio.run(deliver_due(clock))


def unwrap(receiver: WebhookReceiver, secret: str, number: int = -1) -> object:
    """Return the event that the openai client reads out of a request, whose signature must be valid."""
    webhook = receiver.received[number]
    return openai.OpenAI(api_key="-").webhooks.unwrap(webhook.body, webhook.headers, secret=secret)


def test_the_openai_client_unwraps_a_delivery(clock: DateClock) -> None:
    with webhook_receiver() as receiver:
        endpoint, secret = make_endpoint(receiver.url)
        row = make_delivery(endpoint, clock.now)
        assert deliver(clock) == 1
        event = unwrap(receiver, secret)
        assert isinstance(event, openai.types.webhooks.ResponseCompletedWebhookEvent)
        assert (event.id, event.object, event.data.id) == ("evt_1", "event", "resp_1")
        assert event.created_at == int(clock.now.timestamp())
        assert receiver.received[0].headers["webhook-id"] == row.uid
        with pytest.raises(openai.InvalidWebhookSignatureError):
            unwrap(receiver, signatures.new_secret())
    row.refresh_from_db()
    assert (row.status, row.attempts, row.status_code, row.error) == ("delivered", 1, 200, "")
    assert deliver(clock) == 0


def test_host_with_a_wrong_clock_leaves_deliveries_of_other_hosts_and_signs_with_the_time_of_the_database() -> None:
    now, ahead = datetime.now(UTC), timedelta(minutes=10)
    try:
        shared_clock.note(now - ahead, now, now)
        with webhook_receiver() as receiver:
            endpoint, _ = make_endpoint(receiver.url)
            make_delivery(endpoint, now - ahead / 2)
            assert asyncio.run(deliver_due()) == 0, "due by the clock of the host alone"
            make_delivery(endpoint, now - 2 * ahead, "2")
            assert asyncio.run(deliver_due()) == 1
            (request,) = receiver.received
            assert int(request.headers["webhook-timestamp"]) < (now - ahead / 2).timestamp()
    finally:
        shared_clock.note(now, now, now)


def test_deliveries_of_a_clock_that_was_set_back_are_due_again(clock: DateClock) -> None:
    endpoint, _ = make_endpoint("http://127.0.0.1:9")
    waiting, claimed, retried = (make_delivery(endpoint, clock.now + timedelta(days=1), name) for name in "123")
    WebhookDelivery.objects.filter(pk=claimed.pk).update(claim=uuid4())
    # The longest pause, which may be longer than the jump, is left.
    last = len(webhooks.PAUSES)
    WebhookDelivery.objects.filter(pk=retried.pk).update(attempts=last, due_at=clock.now + webhooks.PAUSES[-1])
    assert [*maintenance.mend_due(clock.now)] == [2, 0]
    due = dict(WebhookDelivery.objects.values_list("pk", "due_at"))
    assert due == {
        waiting.pk: clock.now,
        claimed.pk: clock.now + webhooks.LEASE,
        retried.pk: clock.now + webhooks.PAUSES[-1],
    }


def test_no_pause_between_attempts_is_cut(clock: DateClock) -> None:
    with webhook_receiver() as receiver:
        receiver.statuses = [500]
        endpoint, _ = make_endpoint(receiver.url)
        row = make_delivery(endpoint, clock.now)
        for _ in webhooks.PAUSES:
            assert deliver(clock) == 1
            row.refresh_from_db()
            assert [*maintenance.mend_due(clock.now)] == [0, 0]
            clock.now = row.due_at


def test_both_secrets_are_valid_during_a_rotation(clock: DateClock) -> None:
    with webhook_receiver() as receiver:
        endpoint, old = make_endpoint(receiver.url)
        new = rotate(endpoint, keep_old=True)
        make_delivery(endpoint, clock.now)
        deliver(clock)
        assert unwrap(receiver, old) == unwrap(receiver, new)
        clock.now += timedelta(hours=25)
        make_delivery(endpoint, clock.now, "2")
        deliver(clock)
        assert len(receiver.received[-1].headers["webhook-signature"].split()) == 1
        last = rotate(endpoint, keep_old=False)
        make_delivery(endpoint, datetime.now(UTC), "3")
        clock.now = datetime.now(UTC)
        deliver(clock)
        unwrap(receiver, last)
        with pytest.raises(openai.InvalidWebhookSignatureError):
            unwrap(receiver, new)


def test_secrets_survive_a_replacement_of_the_secret_key() -> None:
    row, former = make_endpoint("http://127.0.0.1:9/hook")
    secret = rotate(row, keep_old=True)
    stored = row.secret
    old_key, new_key = settings.SECRET_KEY, "another key with more than thirty-two characters"

    async def run() -> None:
        task = asyncio.ensure_future(deliver_webhooks())
        try:
            await eventually(lambda: call_in_thread(WebhookEndpoint.objects.exclude(secret=stored).exists))
        finally:
            task.cancel()
            await asyncio.wait({task})

    with override_settings(SECRET_KEY=new_key, SECRET_KEY_FALLBACKS=[old_key]):
        asyncio.run(run())
    with override_settings(SECRET_KEY=new_key, SECRET_KEY_FALLBACKS=[]):
        assert signatures.signing_secrets(WebhookEndpoint.objects.get(), datetime.now(UTC)) == [secret, former]


def test_retries_last_about_a_day_and_keep_the_id(clock: DateClock) -> None:
    began, pauses = clock.now, list[timedelta]()
    with webhook_receiver([500, 302, 404]) as receiver:
        row = make_delivery(make_endpoint(receiver.url)[0], clock.now)
        for _ in webhooks.PAUSES:
            assert deliver(clock) == 1
            row.refresh_from_db()
            assert (row.status, deliver(clock)) == ("pending", 0)
            pauses.append(row.due_at - clock.now)
            clock.now = row.due_at
        assert deliver(clock) == 1
        row.refresh_from_db()
        assert (row.status, row.attempts, row.status_code) == ("failed", len(webhooks.PAUSES) + 1, 404)
        # A redirect was not followed.
        assert len(receiver.received) == row.attempts
        assert {webhook.headers["webhook-id"] for webhook in receiver.received} == {row.uid}
        assert len({webhook.body for webhook in receiver.received}) == 1
    for pause, least in zip(pauses, webhooks.PAUSES, strict=True):
        assert least <= pause <= least * (1 + webhooks.JITTER)
    assert timedelta(hours=20) < clock.now - began < timedelta(hours=28)


def test_410_disables_the_endpoint_and_a_resend_enables_it(clock: DateClock) -> None:
    with webhook_receiver([410, 200]) as receiver:
        endpoint, _ = make_endpoint(receiver.url)
        first, second = (make_delivery(endpoint, clock.now, name) for name in ("1", "2"))
        assert deliver(clock) == 1
        endpoint.refresh_from_db()
        assert endpoint.disabled_at is not None
        assert set(endpoint.deliveries.values_list("status", flat=True)) == {DeliveryStatus.FAILED}
        second.refresh_from_db()
        assert second.error == webhooks.DISABLED
        webhooks.resend(first, clock.now)
        assert deliver(clock) == 1
        first.refresh_from_db()
        assert first.status == "delivered"
        assert WebhookEndpoint.objects.get(pk=endpoint.pk).disabled_at is None


def test_a_failed_attempt_is_a_warning_with_response_and_endpoint(clock: DateClock, caplog: pytest.LogCaptureFixture) -> None:
    endpoint, _ = make_endpoint("https://nowhere.invalid/")
    row = make_delivery(endpoint, clock.now, "7")
    deliver(clock)
    (record,) = [record for record in caplog.records if record.name == "responses.webhooks"]
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        f"{row.uid} response.completed of resp_7 to {endpoint.uid}: attempt 1: The host is not"
    )


@pytest.mark.slow
def test_internal_addresses_get_no_request(clock: DateClock) -> None:
    with webhook_receiver() as receiver, override_settings(RESPONSES_WEBHOOK_PRIVATE_HOSTS=frozenset()):
        for url in (receiver.url, "https://127.0.0.1:1/", "https://169.254.169.254/latest", "https://nowhere.invalid/"):
            row = make_delivery(make_endpoint(url)[0], clock.now)
            deliver(clock)
            row.refresh_from_db()
            assert (row.status, row.status_code) == ("pending", None)
            assert row.error.startswith("The host is not on the public internet, or has no address. ")
            assert "RESPONSES_WEBHOOK_PRIVATE_HOSTS" in row.error
        assert receiver.received == []


def test_an_endpoint_that_does_not_answer_counts_as_failed_after_the_time_limit(clock: DateClock) -> None:
    with webhook_receiver(silent=True) as receiver:
        endpoint, _ = make_endpoint(receiver.url)
        event = sender.WebhookEvent("wh_1", "evt_1", "response.failed", "resp_1", clock.now)
        answer = asyncio.run(sender.send_event(endpoint, event, clock.now, timeout_s=0.2))
    assert (answer.status_code, answer.error) == (None, "No answer within 0.2 seconds.")


def test_a_delivery_of_a_dead_process_is_sent_when_its_lease_ends(clock: DateClock) -> None:
    with webhook_receiver() as receiver:
        row = make_delivery(make_endpoint(receiver.url)[0], clock.now)
        lost = webhooks.claim_next(clock.now)
        assert lost is not None
        assert deliver(clock) == 0
        clock.now += webhooks.LEASE
        assert deliver(clock) == 1
        # The former owner changes nothing any more.
        webhooks.note_answer(lost, 500, "", clock.now)
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("delivered", 1)


def test_an_endpoint_whose_secret_cannot_be_read_says_so(clock: DateClock) -> None:
    row = make_delivery(make_endpoint("https://example.com/")[0], clock.now)
    with override_settings(SECRET_KEY="k" * 40, SECRET_KEY_FALLBACKS=[]):
        deliver(clock)
    row.refresh_from_db()
    assert row.error == sender.UNDECRYPTABLE


@override_settings(RESPONSES_WEBHOOKS_PARALLEL=2)
def test_a_silent_endpoint_stops_no_other_project(clock: DateClock) -> None:
    with webhook_receiver(silent=True) as silent, webhook_receiver() as quick:
        slow, _ = make_endpoint(silent.url, "busy")
        for number in range(4):
            make_delivery(slow, clock.now - timedelta(hours=1), str(number))
        row = make_delivery(make_endpoint(quick.url, "quiet")[0], clock.now)

        async def main() -> None:
            delivery = asyncio.create_task(deliver_webhooks(clock, poll_s=0.02))
            try:
                await eventually(lambda: len(quick.received) == 1 and silent.received)
                assert len(silent.received) == 1
            finally:
                delivery.cancel()
                with suppress(asyncio.CancelledError):
                    await delivery

        asyncio.run(main())
    # A delivery in work goes back to the queue at the end of the process, without an attempt.
    assert set(slow.deliveries.values_list("status", "attempts", "claim")) == {("pending", 0, None)}
    row.refresh_from_db()
    assert row.attempts <= 1


def test_old_deliveries_are_pruned(clock: DateClock) -> None:
    endpoint, _ = make_endpoint("https://example.com/")
    make_delivery(endpoint, clock.now - timedelta(days=31), "old")
    make_delivery(endpoint, clock.now, "new")
    assert list(webhooks.prune(clock.now - timedelta(days=30))) == [1]
    assert [row.event_uid for row in endpoint.deliveries.all()] == ["evt_new"]


def test_hint_does_not_reveal_the_secret() -> None:
    secret = signatures.new_secret()
    assert secret.startswith("whsec_")
    assert len(signatures.secret_hint(secret)) == len("whsec_…") + 4
    endpoint, secret = make_endpoint("https://example.com/")
    assert secret.encode() not in bytes(endpoint.secret)

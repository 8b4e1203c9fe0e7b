"""Approvals: a single use in a project, also with claims at the same time, and retention."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.test import TestCase, TransactionTestCase

from responses_app.models import Approval, Direction, Item
from responses_app.store.content import approvals

LATER = datetime.now(UTC) + timedelta(days=1)


class ApprovalsTest(TestCase):
    """A connection."""

    def test_first_response_gets_the_approval(self) -> None:
        self.assertEqual(approvals.claim("p", ["mcpr_1", "mcpr_2"], "resp_1"), {"mcpr_1", "mcpr_2"})
        self.assertEqual(approvals.claim("p", ["mcpr_2", "mcpr_3"], "resp_2"), {"mcpr_3"})

    def test_claim_of_the_same_response_after_a_crash_gets_the_approval_again(self) -> None:
        approvals.claim("p", ["mcpr_1"], "resp_1")
        self.assertEqual(approvals.claim("p", ["mcpr_1", "mcpr_1"], "resp_1"), {"mcpr_1"})
        self.assertEqual(Approval.objects.count(), 1)

    def test_projects_do_not_share_approvals(self) -> None:
        approvals.claim("p", ["mcpr_1"], "resp_1")
        self.assertEqual(approvals.used("p", ["mcpr_1", "mcpr_2"]), {"mcpr_1"})
        self.assertEqual(approvals.used("q", ["mcpr_1"]), set())
        self.assertEqual(approvals.claim("q", ["mcpr_1"], "resp_2"), {"mcpr_1"})

    def test_no_approvals_are_claimed_of_an_empty_list(self) -> None:
        self.assertEqual(approvals.claim("p", [], "resp_1"), set())

    def test_approval_stays_while_its_request_is_stored(self) -> None:
        approvals.claim("p", ["mcpr_1", "mcpr_2"], "resp_1")
        item = Item.objects.create(
            uid="mcpr_1", project="p", direction=Direction.OUTPUT, type="mcp_approval_request", body="{}"
        )
        self.assertEqual(sum(approvals.prune(datetime.now(UTC) - timedelta(days=1))), 0)
        self.assertEqual(sum(approvals.prune(LATER)), 1)
        self.assertEqual(approvals.used("p", ["mcpr_1", "mcpr_2"]), {"mcpr_1"})
        item.delete()
        self.assertEqual(sum(approvals.prune(LATER)), 1)


class SimultaneousClaimsTest(TransactionTestCase):
    """A connection for each claim."""

    def test_only_one_of_many_claims_gets_the_approval(self) -> None:
        uids = [f"mcpr_{number}" for number in range(5)]

        def claim(number: int) -> set[str]:
            order: Sequence[str] = uids if number % 2 else uids[::-1]
            try:
                return approvals.claim("p", order, f"resp_{number}")
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            claimed = list(pool.map(claim, range(8)))
        self.assertEqual(sorted(uid for one in claimed for uid in one), uids)

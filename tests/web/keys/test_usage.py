"""Usage page and its CSV: the projects of the user alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.test import override_settings

from project.model_limits import Price
from responses_app.models import ApiKey, Membership
from responses_app.store.limits.usage import Spent, usage_row
from tests.support.web.page_case import WebCase


class UsagePageTest(WebCase):
    """Usage of two projects."""

    def setUp(self) -> None:
        super().setUp()
        for project in ("p", "q"):
            key, _ = ApiKey.make(f"=key of {project}", project)
            usage_row(project, key.pk, None, "<m>", Spent(1000, 200, 77, 3, 1_500_000_000)).save()

    def test_page_and_csv_show_the_sums(self) -> None:
        with override_settings(RESPONSES_PRICES={"": Price(1, 1, 1)}, RESPONSES_CURRENCY="EUR"):
            page = self.page("/usage?days=7")
        self.assertIn('href="?days=7" aria-current="page">7 days</a>', page)
        for text in ("2,000", "154", "Cost (EUR)", "3.00", "&lt;m&gt;", "key of q"):
            self.assertIn(text, page)
        answer = self.client.get("/usage.csv")
        lines = answer.content.decode().splitlines()
        self.assertEqual(lines[0].split(",")[:4], ["day", "project", "key", "model"])
        pk = ApiKey.objects.get(project="p").pk
        self.assertTrue(lines[1].endswith(f",p,'=key of p,<m>,1,1000,200,77,3,1.5,{pk}"))

    def test_costs_of_all_days_are_added_for_a_key(self) -> None:
        ends = (datetime.now(UTC), datetime.now(UTC) - timedelta(days=1))
        for end, cost in zip(ends, (4_250_000_000, 2_000_000_000), strict=True):
            row = usage_row("r", None, None, "m", Spent(10, 0, 0, 0, cost))
            row.start = end
            row.save()
        with override_settings(RESPONSES_PRICES={"": Price(1, 1, 1)}):
            page = self.page("/usage")
        # Of the project, and of the key.
        self.assertEqual(len(re.findall(r'data-name="Cost"[^>]*>6\.25<', page)), 2)

    def test_keys_of_the_same_name_have_rows_of_their_own(self) -> None:
        for output in (4321, 8765):
            key, _ = ApiKey.make("twice", "r")
            usage_row("r", key.pk, None, "m", Spent(0, 0, output, 0, 0)).save()
        page = self.page("/usage")
        rows = re.findall(r'data-name="Output" class="n">([\d,]+)<', page)
        self.assertEqual(sorted(rows[-4:]), ["4,321", "77", "77", "8,765"])

    def test_small_costs_are_not_shown_as_none(self) -> None:
        usage_row("r", None, None, "m", Spent(10, 0, 0, 0, 1_000_000)).save()
        with override_settings(RESPONSES_PRICES={"": Price(1, 1, 1)}):
            self.assertIn("&lt; 0.01", self.page("/usage"))

    def test_usage_of_this_month_begins_on_its_first_day(self) -> None:
        first = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        for model, start in (("last month", first - timedelta(seconds=1)), ("first day", first)):
            row = usage_row("r", None, None, model, Spent(10, 0, 0, 0, 0))
            row.start = start
            row.save()
        page = self.page("/usage?days=month")
        self.assertIn('href="?days=month" aria-current="page">This month</a>', page)
        self.assertIn("first day", page)
        self.assertNotIn("last month", page)

    def test_usage_of_the_last_month_ends_before_this_one(self) -> None:
        first = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        starts = {"month before": first - timedelta(days=32), "last day": first - timedelta(seconds=1), "newer": first}
        for model, start in starts.items():
            row = usage_row("r", None, None, model, Spent(10, 0, 0, 0, 0))
            row.start = start
            row.save()
        page = self.page("/usage?days=last-month")
        self.assertIn('href="?days=last-month" aria-current="page">Last month</a>', page)
        lines = self.client.get("/usage.csv?days=last-month").content.decode()
        for text in (page, lines):
            self.assertIn("last day", text)
            self.assertNotIn("month before", text)
            self.assertNotIn("newer", text)

    def test_project_has_the_sum_of_its_keys_and_models(self) -> None:
        for model in ("m", "n"):
            usage_row("p", None, None, model, Spent(500, 0, 0, 0, 2_000_000_000)).save()
        with override_settings(RESPONSES_PRICES={"": Price(1, 1, 1)}):
            page = self.page("/usage")
        table = page.partition('aria-label="Usage by project"')[2].partition("</table>")[0]
        self.assertEqual(re.findall(r'data-name="Project" class="wrap">(\w)<', table), ["p", "q"])
        self.assertEqual(re.findall(r'data-name="Input" class="n">([\d,]+)<', table), ["2,000", "1,000"])
        self.assertEqual(re.findall(r'data-name="Cost" class="n">([\d.]+)<', table), ["5.50", "1.50"])

    def test_member_sees_the_own_project_alone(self) -> None:
        user = User.objects.create_user("member")
        Membership.objects.create(user=user, project="p")
        self.client.force_login(user)
        page = self.page("/usage")
        self.assertIn("key of p", page)
        self.assertNotIn("key of q", page)

"""Counters of limits: two processes together keep a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import TransactionTestCase
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from responses_app.models import LimitCounter
from responses_app.models.limits.fields import Amount, CountedLimit
from responses_app.store.limits import counters
from responses_app.store.limits.counters import LimitLevel, LimitNeed

MOST = 1_000
LIMITS = [CountedLimit(f"counter {name}", "key", Amount.TOKENS, "month", MOST) for name in ("one", "two")]
# Reserves until nothing is left; prints how often. One process names the limits in the other order.
PROGRAM = """
import sys, django
django.setup()
from responses_app.models.limits.fields import Amount, CountedLimit
from responses_app.store.limits.counters import LimitNeed, reserve
names = sys.argv[1:]
limits = [CountedLimit(f"counter {name}", "key", Amount.TOKENS, "month", %d) for name in names]
count = 0
while all(level.granted == 3 for level in reserve([LimitNeed(limit, 3, 3) for limit in limits])):
    count += 1
print(count)
"""


class CountersTest(TransactionTestCase):
    """Against the real database."""

    @pytest.mark.slow
    def test_two_processes_together_keep_the_limit(self) -> None:
        database = connection.get_connection_params()
        url = f"postgres://{database['user']}@/{database['dbname']}?host={database.get('host', '')}&port={database.get('port', '')}"
        environment = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM % MOST, *names],
                env=environment,
                cwd=Path(__file__).parents[3],
                stdout=subprocess.PIPE,
                text=True,
            )
            for names in (("one", "two"), ("two", "one"))
        ]
        counts = [int(program.communicate(timeout=120)[0]) for program in programs]
        self.assertEqual(sum(counts), MOST // 3)
        self.assertEqual(set(LimitCounter.objects.values_list("used", flat=True)), {MOST // 3 * 3})

    def test_counter_of_a_clock_that_was_set_back_begins_again(self) -> None:
        for unit in ("minute", "day"):
            with self.subTest(unit=unit):
                limit = CountedLimit(f"clock {unit}", "key", Amount.TOKENS, unit, 100)
                counters.reserve([LimitNeed(limit, 100, 100)])
                LimitCounter.objects.filter(used=100).update(start=timezone.now() + timedelta(days=3))
                (level,) = counters.reserve([LimitNeed(limit, 100, 100)])
                self.assertEqual((level.granted, level.used), (100, 0))
                self.assertLess(level.end_s, 2 * 86400)
                (level,) = counters.reserve([LimitNeed(limit, 1, 1)])
                self.assertEqual(level.granted, 0)

    def test_more_than_reserved_is_added_and_less_is_given_back(self) -> None:
        (level,) = counters.reserve([LimitNeed(LIMITS[0], 400, 400)])
        self.assertEqual((level.used, level.granted, level.remaining), (0, 400, 600))
        counters.settle(counters.dump_differences([(level.charge, counters.used_amounts(tokens=50))]))
        self.assertEqual(LimitCounter.objects.get().used, 50)
        (level,) = counters.reserve([LimitNeed(LIMITS[0], 100, 100)])
        charges = [(level.charge, counters.used_amounts(tokens=1_200)), (level.charge, counters.used_amounts(tokens=0))]
        counters.settle(counters.dump_differences(charges))
        self.assertEqual(LimitCounter.objects.get().used, 50 + 1_200 - 100 + 100 - 100)
        (level,) = counters.reserve([LimitNeed(LIMITS[0], 1, 1)])
        self.assertLess(level.granted, 1)

    def test_part_of_a_need_is_granted_down_to_its_minimum(self) -> None:
        (level,) = counters.reserve([LimitNeed(LIMITS[0], 5 * MOST, 1)])
        self.assertEqual((level.granted, level.remaining), (MOST, 0))
        (level,) = counters.reserve([LimitNeed(LIMITS[0], 5, 1)])
        self.assertEqual(level.granted, 0)


class RecentUsageTest(TestCase):
    """A limit of a minute, of which each amount counts for 60 to 65 s. A function of the tests replaces the clock of Postgres."""

    LIMIT = CountedLimit("counter of a minute", "key", Amount.TOKENS, "minute", MOST)

    def setUp(self) -> None:
        self.execute("CREATE SCHEMA IF NOT EXISTS manual_clock")
        self.execute(
            "CREATE OR REPLACE FUNCTION manual_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE"
            " AS $$ SELECT to_timestamp(current_setting('manual_clock.now')::float8) $$"
        )
        self.execute("SET search_path = manual_clock, public, pg_catalog")
        self.addCleanup(self.execute, "RESET search_path; DROP SCHEMA manual_clock CASCADE")
        self.time = 1_800_000_000
        self.advance(0)

    def execute(self, sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    def reserve(self, tokens: int) -> LimitLevel:
        """Reserve tokens or nothing."""
        (level,) = counters.reserve([LimitNeed(self.LIMIT, tokens, tokens)])
        return level

    def advance(self, seconds: int) -> None:
        """Set the clock forward."""
        self.time += seconds
        self.execute(f"SET manual_clock.now = {self.time}")

    @given(st.lists(st.tuples(st.integers(1, MOST), st.integers(0, 40)), max_size=20))
    def test_no_minute_has_more_than_the_limit(self, steps: list[tuple[int, int]]) -> None:
        LimitCounter.objects.all().delete()
        granted: list[tuple[int, int]] = []
        for tokens, seconds in steps:
            self.advance(seconds)
            bucket = self.time // counters.BUCKET_S
            recent = sum(amount for at, amount in granted if bucket - at < counters.BUCKETS)
            level = self.reserve(tokens)
            self.assertEqual((level.used, level.granted >= tokens), (recent, recent + tokens <= MOST))
            granted += [(bucket, tokens)] * (level.granted >= tokens)

    def test_wait_ends_when_enough_is_available(self) -> None:
        for tokens in (300, 500, 150):
            self.assertEqual(self.reserve(tokens).granted, tokens)
            self.advance(20)
        level = self.reserve(300)
        self.assertEqual((level.used, level.granted), (950, 50))
        # The 300 of the beginning are in the oldest bucket that counts.
        self.assertEqual((level.wait_s(50), level.wait_s(300), level.wait_s(600), level.wait_s(MOST)), (0, 5, 25, 45))
        self.advance(5)
        self.assertEqual(self.reserve(300).granted, 300)

    def test_unused_part_is_given_back_while_its_bucket_counts(self) -> None:
        early, unused = self.reserve(600), counters.used_amounts(tokens=100)
        self.advance(30)
        self.reserve(200)
        settlement = counters.dump_differences([(early.charge, unused)])
        counters.settle(settlement)
        self.assertEqual(self.reserve(1).used, 300)
        self.advance(35)
        self.assertEqual(self.reserve(1).used, 201)
        # Nothing of the others is given back.
        counters.settle(settlement)
        self.assertEqual(self.reserve(1).used, 202)

    def test_more_than_reserved_counts_from_now_on(self) -> None:
        level = self.reserve(100)
        self.advance(50)
        counters.settle(counters.dump_differences([(level.charge, counters.used_amounts(tokens=1_500))]))
        level = self.reserve(1)
        self.assertEqual((level.used, level.remaining, level.wait_s(1)), (1_500, 0, 65))

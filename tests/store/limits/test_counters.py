"""Counters of limits: two processes together keep a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from django.db import connection
from django.test import TransactionTestCase

from responses_app.models import LimitCounter
from responses_app.models.limits.fields import Amount, CountedLimit
from responses_app.store.limits import counters
from responses_app.store.limits.counters import LimitNeed

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

"""Well-known tools: how they are declared in the wild, how people ask for them, what they give back."""

# Lists of phrases read better in long lines than one phrase per line; a path in a phrase opens no file.
# ruff: noqa: S108
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from demo_training.exchanges import sums, words
from demo_training.forms import Call, Json, Tool


@dataclass(frozen=True)
class Slot:
    keys: list[str]
    draw: Callable[[Random], object]
    kind: str = "string"
    says: list[str] = field(default_factory=lambda: [""])
    enum: list[str] | None = None
    optional: bool = False


@dataclass(frozen=True)
class Kind:
    names: list[str]
    says: list[str]
    slots: dict[str, Slot]
    asks: list[str]
    several: list[str] = field(default_factory=list)
    gives: Callable[[Random, Json], object] | None = None


@dataclass(frozen=True)
class Use:
    """A tool with a request that needs it, and the calls that answer the request."""

    tool: Tool
    question: str
    calls: tuple[Call, ...]
    results: tuple[str, ...]


def _place(r: Random) -> str:
    c = words.city(r)
    return c if r.random() < 0.93 else f"{c}, {r.choice(words.REGIONS)}"


def _sky(r: Random, _: Json) -> object:
    t, sky = r.randint(-9, 38), r.choice(["sunny", "cloudy", "rainy", "snowy", "windy", "clear", "foggy"])
    key = r.choice(["temperature", "temp", "temperature_c"])
    return r.choice(
        [
            {key: t, "condition": sky},
            {key: t},
            {"weather": sky, key: t},
            f"{t} degrees and {sky}",
            f"{sky}, {t} C",
            f"{t}",
            f"It is {sky}.",
            {key: t, "unit": "celsius"},
            {key: str(t), "conditions": sky},
        ]
    )


def _money(r: Random, _: Json) -> object:
    p = round(r.uniform(1, 999), r.choice([0, 1, 2]))
    return r.choice([{"price": p}, f"{p}", f"{p} USD", {"price": p, "currency": "USD"}, {"result": p}])


def _clock(r: Random, _: Json) -> object:
    t = f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}"
    return r.choice([t, {"time": t}, f"It is {t}", {"current_time": t}])


def _done(r: Random, _: Json) -> object:
    return r.choice(
        [
            "ok",
            "done",
            "OK",
            {"status": "ok"},
            {"status": "sent"},
            {"success": True},
            {"ok": True, "id": r.randint(1, 999)},
            "success",
        ]
    )


def _text(r: Random, _: Json) -> object:
    return r.choice(
        [
            words.phrase(r, 8),
            words.phrase(r, 6).capitalize() + ".",
            {"result": words.phrase(r, 4)},
            {words.english_word(r): words.phrase(r, 3), words.english_word(r): r.randint(1, 999)},
        ]
    )


def _count(r: Random, _: Json) -> object:
    n = r.randint(0, 9999)
    return r.choice([str(n), {"result": n}, {"value": n}, n])


def _expression(r: Random) -> str:
    a, b, c = r.randint(1, 99), r.randint(1, 99), r.randint(1, 12)
    return r.choice(
        [
            f"{a} + {b}",
            f"{a} * {b}",
            f"{a}*{b}",
            f"{a}+{b}",
            f"{a} - {b}",
            f"({a} + {b}) * {c}",
            f"{a} / {c}",
            f"{a}*({b}+{c})",
            f"{a * 37} * {b * 11}",
            f"{c}^{c}",
            f"{a}**2",
            f"sqrt({a})",
        ]
    )


def _free(r: Random) -> str:
    return words.phrase(r, 4)


_CITY = Slot(
    ["location", "city", "location", "city", "place", "city_name", "town"],
    _place,
    says=[
        "City name",
        "The city",
        "City and country e.g. Bogotá, Colombia",
        "The city and state, e.g. San Francisco, CA",
        "",
        "location",
        "Name of the city",
    ],
)
_UNIT = Slot(
    ["unit", "units"],
    lambda _: "celsius",
    enum=["celsius", "fahrenheit"],
    optional=True,
    says=["", "Temperature unit", "Units the temperature will be returned in."],
)


def _whole(low: int, high: int) -> Callable[[Random], object]:
    return lambda r: r.randint(low, high)


_A = Slot(["a", "x", "first", "left"], _whole(0, 999), "number", ["", "First number"])
_B = Slot(["b", "y", "second", "right"], _whole(0, 999), "number", ["", "Second number"])

KINDS: dict[str, Kind] = {
    "weather": Kind(
        [
            "get_weather",
            "get_weather",
            "get_current_weather",
            "weather",
            "fetch_weather",
            "get_forecast",
            "getWeather",
            "current_weather",
            "weather_lookup",
        ],
        [
            "Get the weather",
            "Get current weather for a city",
            "Get current temperature for a given location.",
            "Returns the weather",
            "Get the current weather in a given location",
            "Weather forecast",
            "",
        ],
        {"c": _CITY, "u": _UNIT},
        [
            "What is the weather in {c}?",
            "What is the weather in {c}?",
            "What's the weather in {c}?",
            "What's the weather like in {c}?",
            "What is the weather like in {c}?",
            "What's the weather like in {c} today?",
            "Weather in {c}",
            "How is the weather in {c}?",
            "Is it raining in {c}?",
            "Do I need an umbrella in {c}?",
            "How hot is it in {c}?",
            "How cold is it in {c} right now?",
            "Tell me the weather for {c}.",
            "Is it sunny in {c} today?",
            "What is the temperature in {c}?",
            "I am going to {c}. What will the weather be?",
            "Check the weather in {c} please",
            "Will it snow in {c}?",
            "How warm is it in {c}?",
            "Please get the weather in {c}.",
            "What's it like outside in {c}?",
            "I am in {c}. Should I take a coat?",
            "{c} weather?",
            "Should I wear a jacket in {c}?",
            "forecast for {c}",
        ],
        [
            "What is the weather in {m}?",
            "What is the weather in {m}?",
            "What's the weather in {m}?",
            "What's the weather like in {m}?",
            "Weather in {m}",
            "Compare the weather in {m}.",
            "How is the weather in {m}?",
            "What's the temperature in {m}?",
            "Is it warmer in {m}?",
            "Get the weather for {m}.",
            "Tell me the weather in {m} please",
            "Is it raining in {m}?",
            "Check the weather for {m}",
            "What's the weather like in {m} today?",
        ],
        _sky,
    ),
    "stock": Kind(
        ["get_stock_price", "get_stock_price", "stock_price", "get_quote", "fetch_stock", "getStockPrice", "lookup_stock"],
        ["Get the stock price", "Get the current price of a stock", "Look up a stock by its ticker symbol", ""],
        {
            "t": Slot(
                ["ticker", "symbol", "ticker", "stock", "company"],
                lambda r: r.choice(words.TICKERS) if r.random() < 0.6 else words.syllables(r, 2).upper()[: r.randint(3, 5)],
                says=["", "Ticker symbol", "The stock symbol"],
            )
        },
        [
            "What is the stock price of {t}?",
            "Look up the stock price of {t}.",
            "Price of {t} stock?",
            "How is {t} doing on the stock market?",
            "What does a share of {t} cost?",
            "Get the price of {t}",
            "How much is {t} stock worth?",
            "Stock quote for {t} please",
            "What is {t} trading at?",
            "How much does one {t} share cost?",
        ],
        [
            "What are the stock prices of {m}?",
            "Compare the stocks {m}.",
            "Look up the prices of {m}.",
            "Stock prices for {m}",
            "How much are {m} shares?",
        ],
        _money,
    ),
    "time": Kind(
        ["get_time", "get_current_time", "current_time", "time_in_city", "get_local_time", "clock"],
        ["Get the current time", "Get the time in a city", "Returns the local time", ""],
        {"c": Slot(["city", "location", "place", "timezone"], words.city, says=["", "City", "Where"])},
        [
            "What time is it in {c}?",
            "What is the time in {c}?",
            "Tell me the time in {c}.",
            "How late is it in {c}?",
            "Current time in {c}",
            "Is it night in {c}?",
            "What's the current time in {c}?",
            "time in {c} please",
        ],
        ["What time is it in {m}?", "Tell me the time in {m}.", "Current time in {m}?", "What's the local time in {m}?"],
        _clock,
    ),
    "zone": Kind(
        ["get_time", "get_current_time", "current_time", "get_datetime"],
        ["Get the current time in a timezone", "Current time", ""],
        {
            "z": Slot(
                ["timezone", "tz", "time_zone"],
                lambda r: r.choice([*words.ZONES.values(), "UTC", "CET", "PST", "EST", "GMT"]),
                says=["", "IANA timezone", "Timezone e.g. Europe/London"],
            )
        },
        [
            "What time is it in {z}?",
            "Current time in {z}",
            "What is the time in the timezone {z}?",
            "Tell me the time for {z}.",
            "time in {z}?",
            "What's the {z} time now?",
        ],
        ["What time is it in {m}?", "Current time in {m}"],
        _clock,
    ),
    "search": Kind(
        ["search", "web_search", "search_web", "search_knowledge_base", "file_search", "lookup", "google", "find_documents"],
        ["Search the web", "Search for documents", "Query a knowledge base", "Search", "Look things up", ""],
        {
            "q": Slot(
                ["query", "query", "q", "search_query", "text"],
                _free,
                says=["", "Search query", "The user question or search query."],
            )
        },
        [
            "Search for {q}.",
            "Search the web for {q}.",
            "Find information about {q}",
            "Look up {q}.",
            "Google {q}",
            "Can you search for {q}?",
            "Search {q}",
            "Please look for {q} on the web.",
            "What does the web say about {q}?",
            "Find documents about {q}.",
            "Look for {q} in the files",
            "Do a search on {q}",
        ],
        ["Search for {m}.", "Look up {m}."],
        _text,
    ),
    "calculator": Kind(
        ["calculator", "calculate", "calc", "evaluate", "math", "compute"],
        ["Evaluate an expression", "Does arithmetic", "Calculator", "A simple calculator", ""],
        {
            "e": Slot(
                ["expression", "expr", "expression", "input", "formula"],
                _expression,
                says=["", "The expression to evaluate", "e.g. 2 + 2"],
            )
        },
        [
            "What is {e}?",
            "Calculate {e}",
            "Compute {e}.",
            "{e}",
            "How much is {e}?",
            "Use the calculator for {e}",
            "Please work out {e}",
            "Evaluate {e}.",
            "Solve {e}",
            "{e} = ?",
        ],
        ["Calculate {m}.", "What is {m}?"],
        _count,
    ),
    "python": Kind(
        ["python", "code_interpreter", "run_python", "execute_code", "run_code"],
        ["Run Python code", "Executes Python", ""],
        {"e": Slot(["code", "code", "source", "script"], lambda r: f"print({_expression(r)})", says=["", "Python code"])},
        [
            "Run {e}",
            "Run this code: {e}",
            "Execute {e} in Python.",
            "Use Python to run {e}",
            "Please run {e}.",
            "What does {e} print?",
        ],
        [],
        _count,
    ),
    "add": Kind(
        ["add", "add_numbers", "sum", "plus", "addition"],
        ["Add two numbers", "Adds a and b", "Sum of two numbers", ""],
        {"a": _A, "b": _B},
        [
            "Add {a} and {b}.",
            "What is {a} plus {b}?",
            "What is {a} + {b}?",
            "Sum {a} and {b}",
            "How much is {a} + {b}?",
            "Use the tool to add {a} and {b}",
            "Compute {a} + {b}",
        ],
        [],
        _count,
    ),
    "multiply": Kind(
        ["multiply", "mul", "multiply_numbers", "times", "product"],
        ["Multiply two numbers", "Multiplies a and b", ""],
        {"a": _A, "b": _B},
        [
            "Multiply {a} by {b}.",
            "What is {a} times {b}?",
            "What is {a} * {b}?",
            "Multiply {a} and {b}",
            "Product of {a} and {b}?",
            "{a} x {b}",
            "Compute {a} times {b}",
        ],
        [],
        _count,
    ),
    "email": Kind(
        ["send_email", "send_email", "email", "send_mail", "sendEmail"],
        ["Send an email", "Sends an email to somebody", "Send an email to a given recipient with a subject and message.", ""],
        {
            "t": Slot(["to", "to", "recipient", "email", "address"], words.email, says=["", "The recipient email address."]),
            "s": Slot(["subject", "title"], lambda r: words.phrase(r, 3), says=["", "Email subject line."], optional=True),
            "b": Slot(
                ["body", "message", "text", "content"], lambda r: words.phrase(r, 6), says=["", "Body of the email message."]
            ),
        },
        [
            "Send an email to {t} saying {b}.",
            "Email {t} with the message {b}",
            "Write an email to {t} with subject {s} and text {b}",
            "Send a mail to {t}, subject {s}, body {b}.",
            "Send {t} an email about {s} that says {b}",
            "Tell {t} by email: {b}",
            "Send an email to {t} with the subject '{s}' and the body '{b}'.",
            "Can you send an email to {t} saying '{b}'?",
            "Please mail {b} to {t}",
        ],
        ["Send an email to {m} saying hi.", "Can you send an email to {m} saying hi?"],
        _done,
    ),
    "horoscope": Kind(
        ["get_horoscope", "get_horoscope", "horoscope", "daily_horoscope"],
        ["Get today's horoscope for an astrological sign.", "Horoscope", ""],
        {
            "s": Slot(
                ["sign", "sign", "zodiac"],
                lambda r: r.choice(words.SIGNS),
                says=["", "An astrological sign like Taurus or Aquarius"],
            )
        },
        [
            "What is my horoscope? I am an {s}.",
            "What is my horoscope? I am a {s}.",
            "Horoscope for {s}",
            "I am a {s}. What do the stars say?",
            "Give me the horoscope of {s}.",
            "What's the horoscope for {s} today?",
            "My sign is {s}. What is my horoscope?",
        ],
        ["Horoscopes for {m}", "What are the horoscopes for {m}?"],
        _text,
    ),
    "currency": Kind(
        ["convert_currency", "convert_currency", "exchange", "currency_converter", "convert"],
        ["Convert an amount between currencies", "Currency conversion", ""],
        {
            "a": Slot(["amount", "value", "amount"], _whole(1, 999), "number"),
            "f": Slot(["from", "from_currency", "source", "base", "from"], lambda r: r.choice(words.CURRENCIES)),
            "t": Slot(["to", "to_currency", "target", "to"], lambda r: r.choice(words.CURRENCIES)),
        },
        [
            "Convert {a} {f} to {t}.",
            "How much is {a} {f} in {t}?",
            "Change {a} {f} into {t}",
            "What are {a} {f} in {t}?",
            "Exchange {a} {f} for {t}",
            "{a} {f} to {t}",
            "I have {a} {f}. How many {t} is that?",
        ],
        [],
        _money,
    ),
    "reminder": Kind(
        ["create_reminder", "set_reminder", "remind", "add_reminder"],
        ["Create a reminder", "Remind the user", ""],
        {
            "x": Slot(["text", "message", "task", "title"], lambda r: words.phrase(r, 4)),
            "t": Slot(
                ["time", "when", "at"],
                lambda r: r.choice(
                    [
                        f"{r.randint(1, 12)}pm",
                        f"{r.randint(1, 12)}am",
                        f"{r.randint(0, 23)}:{r.randint(10, 59)}",
                        "tomorrow",
                        r.choice(words.DAYS),
                        "noon",
                    ]
                ),
            ),
        },
        ["Remind me to {x} at {t}.", "Set a reminder at {t} to {x}", "Remind me at {t}: {x}", "Create a reminder for {t}: {x}"],
        [],
        _done,
    ),
    "timer": Kind(
        ["set_timer", "start_timer", "timer"],
        ["Set a timer", ""],
        {"n": Slot(["minutes", "duration_minutes", "minutes", "duration"], _whole(1, 90), "integer")},
        [
            "Set a timer for {n} minutes.",
            "Start a {n} minute timer",
            "Timer {n} minutes",
            "Wake me in {n} minutes",
            "Tell me when {n} minutes are over.",
        ],
        [],
        _done,
    ),
    "translate": Kind(
        ["translate", "translate_text", "translator"],
        ["Translate a text", "Translates text into another language", ""],
        {
            "x": Slot(["text", "text", "sentence"], lambda r: words.phrase(r, 4)),
            "l": Slot(["target_language", "language", "target", "to", "lang"], lambda r: r.choice(words.LANGUAGES)),
        },
        [
            "Translate '{x}' to {l}.",
            "How do you say {x} in {l}?",
            "Translate {x} into {l}",
            "What is '{x}' in {l}?",
            "Say {x} in {l}",
        ],
        [],
        _text,
    ),
    "light": Kind(
        ["turn_on_light", "set_light", "switch_light", "light", "control_light"],
        ["Switch a light", "Turn a light on or off", ""],
        {
            "r": Slot(
                ["room", "location", "name"],
                lambda r: r.choice(
                    [
                        "kitchen",
                        "bedroom",
                        "garage",
                        "living room",
                        "office",
                        "bathroom",
                        words.syllables(r),
                        words.english_word(r),
                    ]
                ),
            ),
            "o": Slot(["on", "state", "enabled"], lambda r: r.random() < 0.5, "boolean"),
        },
        [
            "Turn {o} the light in the {r}.",
            "Switch {o} the {r} light",
            "Turn the {r} light {o}",
            "Please turn {o} the lights in the {r}",
            "{r} light {o}",
        ],
        [],
        _done,
    ),
    "thermostat": Kind(
        ["set_temperature", "set_thermostat", "heat_room"],
        ["Set the temperature of a room", ""],
        {
            "r": Slot(
                ["room", "zone"],
                lambda r: r.choice(["kitchen", "bedroom", "garage", "living room", "office", words.english_word(r)]),
            ),
            "n": Slot(["degrees", "temperature", "target"], _whole(5, 30), "number"),
        },
        [
            "Set the {r} to {n} degrees.",
            "Make the {r} {n} degrees warm",
            "Heat the {r} to {n}",
            "Set the temperature in the {r} to {n}.",
        ],
        [],
        _done,
    ),
    "order": Kind(
        ["get_order_status", "track_order", "order_status", "get_order"],
        ["Get the status of an order", "Track an order", ""],
        {"i": Slot(["order_id", "id", "order_number", "order"], words.code)},
        [
            "Where is my order {i}?",
            "What is the status of order {i}?",
            "Track order {i}",
            "Check order {i} please",
            "Has my order {i} been shipped?",
        ],
        ["Check the orders {m}", "What is the status of orders {m}?"],
        _text,
    ),
    "flight": Kind(
        ["book_flight", "search_flights", "find_flights", "flight"],
        ["Find flights between two cities", "Book a flight", ""],
        {
            "f": Slot(["origin", "from", "from_city", "departure"], words.city),
            "t": Slot(["destination", "to", "to_city", "arrival"], words.city),
            "d": Slot(
                ["date", "day"],
                lambda r: r.choice(
                    [f"{r.randint(2024, 2028)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}", "tomorrow", r.choice(words.DAYS)]
                ),
                optional=True,
            ),
        },
        [
            "Book a flight from {f} to {t}.",
            "Find a flight from {f} to {t} on {d}",
            "I want to fly from {f} to {t}.",
            "Flights from {f} to {t} {d}",
            "Is there a flight to {t} from {f}?",
            "Fly me from {f} to {t} on {d}.",
        ],
        [],
        _text,
    ),
    "news": Kind(
        ["get_news", "news", "latest_news"],
        ["Get the news about a topic", "News", ""],
        {"t": Slot(["topic", "subject", "keyword"], lambda r: words.phrase(r, 2))},
        [
            "What is the news about {t}?",
            "News about {t}",
            "Any news on {t}?",
            "Get me the latest news about {t}",
            "What happened with {t} today?",
        ],
        ["News about {m}", "Get the news on {m}"],
        _text,
    ),
    "dice": Kind(
        ["roll_dice", "roll", "dice"],
        ["Roll a die", "Roll dice", ""],
        {"n": Slot(["sides", "n", "faces"], _whole(2, 100), "integer")},
        ["Roll a die with {n} sides.", "Roll a {n} sided die", "Roll a d{n}", "Throw a dice with {n} faces", "roll dice {n}"],
        [],
        _count,
    ),
    "define": Kind(
        ["define_word", "dictionary", "get_definition"],
        ["Look up the meaning of a word", "Dictionary", ""],
        {"w": Slot(["word", "term"], lambda r: words.phrase(r, 1))},
        [
            "What does {w} mean?",
            "Define {w}.",
            "What is the definition of {w}?",
            "Look up {w} in the dictionary",
            "What is the meaning of {w}?",
        ],
        ["Define {m}", "What do {m} mean?"],
        _text,
    ),
    "event": Kind(
        ["create_event", "add_event", "create_calendar_event", "schedule_meeting"],
        ["Create a calendar event", "Schedule a meeting", ""],
        {
            "x": Slot(["title", "name", "summary"], lambda r: words.phrase(r, 3)),
            "d": Slot(
                ["date", "day", "start"],
                lambda r: r.choice(
                    [f"{r.randint(2024, 2028)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}", "tomorrow", r.choice(words.DAYS)]
                ),
            ),
        },
        [
            "Create an event {x} on {d}.",
            "Put {x} on {d} into my calendar",
            "Schedule {x} for {d}",
            "Add '{x}' to the calendar on {d}.",
            "Plan a meeting called {x} for {d}",
        ],
        [],
        _done,
    ),
    "distance": Kind(
        ["get_distance", "distance", "calculate_distance"],
        ["Distance between two places", ""],
        {"f": Slot(["from", "origin", "start", "a"], words.city), "t": Slot(["to", "destination", "end", "b"], words.city)},
        [
            "How far is it from {f} to {t}?",
            "What is the distance between {f} and {t}?",
            "Distance from {f} to {t}",
            "How many kilometres from {f} to {t}?",
        ],
        [],
        _count,
    ),
    "fact": Kind(
        ["get_population", "population", "country_info", "get_country_population"],
        ["Get the population", "Number of people in a place", ""],
        {
            "c": Slot(
                ["country", "city", "place"], lambda r: r.choice(list(words.CAPITALS)) if r.random() < 0.6 else words.city(r)
            )
        },
        [
            "What is the population of {c}?",
            "How many people live in {c}?",
            "Population of {c}",
            "How big is the population in {c}?",
        ],
        ["What is the population of {m}?", "How many people live in {m}?"],
        _count,
    ),
    "user": Kind(
        ["get_user", "lookup_user", "find_customer", "get_customer", "user_info"],
        ["Look up a user", "Find a customer by id", ""],
        {"i": Slot(["user_id", "id", "customer_id", "name"], lambda r: r.choice([words.code(r), words.name(r)]))},
        [
            "Look up user {i}.",
            "Who is user {i}?",
            "Find the customer {i}",
            "Get the data of user {i}",
            "Show me the customer {i}.",
        ],
        ["Look up users {m}", "Find the customers {m}"],
        _text,
    ),
    "file": Kind(
        ["read_file", "open_file", "get_file", "cat"],
        ["Read a file", "Show the content of a file", ""],
        {
            "p": Slot(
                ["path", "filename", "file", "path"],
                lambda r: (
                    r.choice(["", "/tmp/", "docs/", "src/"])
                    + words.syllables(r, 2)
                    + r.choice([".txt", ".md", ".py", ".json", ".csv"])
                ),
            )
        },
        ["Read the file {p}.", "What is in {p}?", "Open {p}", "Show me {p}", "Read {p} please", "What does the file {p} say?"],
        ["Read the files {m}", "Show me {m}"],
        _text,
    ),
    "nothing": Kind(
        [
            "get_date",
            "get_time",
            "get_current_time",
            "list_users",
            "get_status",
            "ping",
            "get_joke",
            "list_files",
            "get_location",
        ],
        ["", "Takes no arguments"],
        {},
        [],
        [],
        _text,
    ),
    "place": Kind(
        ["get_weather", "get_weather", "get_forecast", "weather_at"],
        ["Get current temperature for provided coordinates in celsius.", "Weather at coordinates", ""],
        {"c": Slot(["latitude"], lambda r: r.choice(list(words.PLACES)))},
        ["What's the weather like in {c} today?", "What is the weather in {c}?", "Weather in {c}", "How warm is it in {c}?"],
        [],
        _sky,
    ),
}
_NO_ARGUMENT = {
    "get_date": ["What is the date today?", "Which day is it?", "Tell me today's date."],
    "get_time": ["What time is it?", "How late is it?", "Tell me the time.", "Do you know the time?"],
    "get_current_time": ["What time is it?", "What time is it now?", "Tell me the current time"],
    "list_users": ["List the users.", "Which users are there?", "Show me all users"],
    "get_status": ["What is the status?", "How is the status of the system?", "Get the status"],
    "ping": ["Ping the server.", "ping", "Do a ping"],
    "get_joke": ["Tell me a joke.", "I want a joke", "Get a joke"],
    "list_files": ["List the files.", "Which files are there?", "Show me all files"],
    "get_location": ["Where am I?", "What is my location?", "Get my location"],
}


def shaped(r: Random, properties: Json, required: list[str]) -> Json:
    """A parameters schema in one of the shapes that people send."""
    schema: Json = {"type": "object", "properties": properties}
    if required or r.random() < 0.5:
        schema["required"] = required
    if r.random() < 0.4:
        schema["additionalProperties"] = False
    return shuffled(r, schema) if r.random() < 0.3 else schema


def shuffled(r: Random, schema: Json) -> Json:
    """Databases that store JSON do not keep the order of keys."""
    keys = r.sample(list(schema), len(schema))
    return {k: schema[k] for k in keys}


def property_(r: Random, kind: str, says: str, enum: list[str] | None) -> Json:
    field_: Json = {"type": kind}
    if enum:
        field_["enum"] = enum
    if says and r.random() < 0.6:
        field_["description"] = says
    return shuffled(r, field_) if r.random() < 0.3 else field_


def joined(items: list[str], r: Random) -> str:
    last = (
        r.choice([" and ", " and ", " and ", " and in ", ", ", " or ", " & "])
        if len(items) == 2
        else r.choice([" and ", ", and ", ", "])
    )
    return ", ".join(items[:-1]) + last + items[-1]


def result_text(r: Random, kind: Kind, arguments: Json) -> str:
    given = kind.gives(r, arguments) if kind.gives else "ok"
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _nothing(r: Random, kind: Kind) -> Use:
    name = r.choice(kind.names)
    parameters: Json = r.choice(
        [
            {"type": "object", "properties": {}},
            {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        ]
    )
    tool = Tool(name, r.choice(kind.says) or name.replace("_", " ").capitalize(), parameters)
    return Use(tool, r.choice(_NO_ARGUMENT[name]), (Call(name, {}),), (result_text(r, kind, {}),))


def _coordinates(r: Random, kind: Kind) -> Use:
    name, where = r.choice(kind.names), r.choice(list(words.PLACES))
    number: Json = {"type": "number"}
    tool = Tool(name, r.choice(kind.says), shaped(r, {"latitude": number, "longitude": number}, ["latitude", "longitude"]))
    latitude, longitude = words.PLACES[where]
    arguments = {"latitude": latitude, "longitude": longitude}
    return Use(tool, fill_ask(r, kind.asks, {"c": where}), (Call(name, arguments),), (result_text(r, kind, arguments),))


def fill_ask(r: Random, asks: list[str], values: Json) -> str:
    said = {k: ("on" if v else "off") if isinstance(v, bool) else v for k, v in values.items()}
    return r.choice(asks).format(**said)


def _unit_of(r: Random, question: str, slot: Slot, required: bool) -> tuple[str, object | None]:
    """Adds a wish for a unit to the question, sometimes; with the value that the call then needs."""
    options = slot.enum or []
    if r.random() < 0.35:
        unit = r.choice(options)
        return question.rstrip("?. ") + r.choice([" in {u}?", " in {u}", ", in {u} please", ". Use {u}.", " (in {u})"]).format(
            u=unit if r.random() < 0.7 else unit.capitalize()
        ), unit
    return question, options[0] if required else None


def known_use(r: Random, which: str | None = None, several: bool | None = None) -> Use:
    """One of the well-known tools, with a request for it."""
    weights = {
        "weather": 40,
        "stock": 6,
        "time": 6,
        "search": 5,
        "calculator": 4,
        "add": 3,
        "multiply": 3,
        "email": 2,
        "currency": 2,
        "horoscope": 2,
        "zone": 2,
    }
    which = which or r.choices(list(KINDS), [weights.get(k, 0.4) for k in KINDS])[0]
    kind = KINDS[which]
    if which == "nothing":
        return _nothing(r, kind)
    if which == "place":
        return _coordinates(r, kind)
    name = r.choice(kind.names)
    keys = {s: r.choice(slot.keys) for s, slot in kind.slots.items()}
    used = {s: slot for s, slot in kind.slots.items() if not (slot.enum and r.random() < 0.4)}
    many = bool(kind.several) and (r.random() < 0.38 if several is None else several)
    question, rows = _several(r, kind) if many else _single(r, kind)
    required_enum = r.random() < 0.4
    for s, slot in used.items():
        if slot.enum:
            question, unit = _unit_of(r, question, slot, required_enum)
            rows = [row | ({s: unit} if unit is not None else {}) for row in rows]
    stated = {s for row in rows for s in row}
    required = [keys[s] for s, slot in used.items() if (s in stated and not slot.optional) or (slot.enum and required_enum)]
    enums = {s: (slot.enum if slot.enum else None) for s, slot in used.items()}
    properties = {keys[s]: property_(r, slot.kind, r.choice(slot.says), enums[s]) for s, slot in used.items()}
    tool = Tool(name, r.choice(kind.says) or name.replace("_", " ").capitalize(), shaped(r, properties, required))
    calls = tuple(Call(name, {keys[s]: row[s] for s in used if s in row}) for row in rows)
    return Use(tool, question, calls, tuple(result_text(r, kind, c.arguments) for c in calls))


def _single(r: Random, kind: Kind) -> tuple[str, list[Json]]:
    template = r.choice(kind.asks)
    values = {s: slot.draw(r) for s, slot in kind.slots.items() if "{" + s + "}" in template}
    return fill_ask(r, [template], values), [values]


def _several(r: Random, kind: Kind) -> tuple[str, list[Json]]:
    """The same question for two or three things: as many calls."""
    slot_name, slot = next(iter(kind.slots.items()))
    things = list(dict.fromkeys(str(slot.draw(r)) for _ in range(r.choice([2, 2, 2, 3]))))
    extra: Json = {"b": "hi"} if "body" in kind.slots.get("b", slot).keys else {}
    return r.choice(kind.several).format(m=joined(things, r) if len(things) > 1 else things[0]), [
        {slot_name: t} | extra for t in things
    ]


def sum_with_tool(r: Random) -> Use:
    """A sum in words, where the calculator wants signs."""
    use = known_use(r, "calculator")
    sign = r.choice("+-*/")
    a, b = sums.numbers(r, sign)
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[sign]
    key = next(iter(use.calls[0].arguments))
    return Use(
        use.tool,
        fill_ask(
            r,
            ["What is {a} {w} {b}?", "Calculate {a} {w} {b}.", "How much is {a} {w} {b}?", "{a} {w} {b}"],
            {"a": a, "w": word, "b": b},
        ),
        (Call(use.tool.name, {key: f"{a} {sign} {b}"}),),
        (str(sums.work(a, sign, b)[1]),),
    )

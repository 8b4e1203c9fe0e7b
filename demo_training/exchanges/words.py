"""Word lists and made-up words: everything that a dialogue can be about."""

# Lists of words read better as one text.
# ruff: noqa: E501, SIM905
from __future__ import annotations

import functools
import re
from random import Random

NAMES = (
    "Anna Ben Carla David Emma Felix Grace Hugo Ida Jack Karen Leo Maria Noah Olivia Paul Quinn Rosa Sam Tina Uma Victor Wendy Xavier "
    "Yara Zoe Alice Bob Carol Dan Eve Frank George Helen Ivan Julia Kevin Laura Mark Nina Oscar Peter Ruth Sarah Tom Ursula Vera Walter "
    "Alex Priya Ahmed Fatima Chen Yuki Kenji Olga Sven Ingrid Pablo Lucia Marco Giulia Pierre Claire Hans Greta Aisha Omar Mia Liam Ava "
    "Ethan Sophia Lucas Mason Ella James Mary John Linda Robert Susan Michael Jennifer William Jessica Richard Thomas Daniel Matthew Amy"
).split()

CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "England": "London",
    "the United Kingdom": "London",
    "Ireland": "Dublin",
    "Japan": "Tokyo",
    "China": "Beijing",
    "India": "New Delhi",
    "Russia": "Moscow",
    "Poland": "Warsaw",
    "Austria": "Vienna",
    "Switzerland": "Bern",
    "Belgium": "Brussels",
    "the Netherlands": "Amsterdam",
    "Denmark": "Copenhagen",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Finland": "Helsinki",
    "Greece": "Athens",
    "Turkey": "Ankara",
    "Egypt": "Cairo",
    "Kenya": "Nairobi",
    "Canada": "Ottawa",
    "the United States": "Washington",
    "the USA": "Washington",
    "Mexico": "Mexico City",
    "Brazil": "Brasilia",
    "Argentina": "Buenos Aires",
    "Chile": "Santiago",
    "Peru": "Lima",
    "Cuba": "Havana",
    "Australia": "Canberra",
    "New Zealand": "Wellington",
    "South Korea": "Seoul",
    "Thailand": "Bangkok",
    "Vietnam": "Hanoi",
    "Hungary": "Budapest",
    "Czechia": "Prague",
    "Ukraine": "Kyiv",
    "Iceland": "Reykjavik",
    "Morocco": "Rabat",
    "Indonesia": "Jakarta",
}

CITIES = sorted(set(CAPITALS.values())) + (
    "Boston|Chicago|New York|San Francisco|Los Angeles|Seattle|Miami|Munich|Hamburg|Milan|Naples|Barcelona|Porto|Lyon|Nice|Geneva|Zurich|"
    "Osaka|Kyoto|Shanghai|Mumbai|Sydney|Melbourne|Toronto|Vancouver|Istanbul|Dubai|Singapore|Hong Kong|Krakow|Manchester|Edinburgh|Glasgow|"
    "Denver|Dallas|Houston|Austin|Atlanta|Phoenix|Portland|Philadelphia|Detroit|Lagos|Cape Town|Bogota|Marseille|Venice|Florence"
).split("|")

REGIONS = [
    "France",
    "Italy",
    "Spain",
    "Germany",
    "Japan",
    "USA",
    "UK",
    "CA",
    "TX",
    "NY",
    "MA",
    "WA",
    "Canada",
    "Brazil",
    "India",
    "Colombia",
]
ZONES = {
    "Paris": "Europe/Paris",
    "London": "Europe/London",
    "Berlin": "Europe/Berlin",
    "Rome": "Europe/Rome",
    "Madrid": "Europe/Madrid",
    "Tokyo": "Asia/Tokyo",
    "Sydney": "Australia/Sydney",
    "New York": "America/New_York",
    "Moscow": "Europe/Moscow",
    "Dubai": "Asia/Dubai",
    "Los Angeles": "America/Los_Angeles",
    "Chicago": "America/Chicago",
    "Singapore": "Asia/Singapore",
    "Shanghai": "Asia/Shanghai",
}
PLACES = {
    "Paris": (48.8566, 2.3522),
    "London": (51.5074, -0.1278),
    "Berlin": (52.52, 13.405),
    "Rome": (41.9028, 12.4964),
    "Tokyo": (35.6762, 139.6503),
    "New York": (40.7128, -74.006),
    "Madrid": (40.4168, -3.7038),
    "Sydney": (-33.8688, 151.2093),
    "Oslo": (59.9139, 10.7522),
    "Boston": (42.3601, -71.0589),
    "San Francisco": (37.7749, -122.4194),
    "Bogota": (4.711, -74.0721),
}
COLOURS = "red blue green yellow orange purple pink brown black white grey silver gold turquoise violet".split()
ANIMALS = (
    "dragon cat dog fox bear rabbit mouse lion tiger wolf horse owl frog turtle penguin elephant monkey whale dolphin eagle snake spider bee "
    "duck goat pig cow sheep hen deer squirrel hedgehog crocodile giraffe zebra camel parrot raven unicorn robot wizard knight princess pirate "
    "king queen witch giant ghost sailor baker farmer teacher astronaut detective gardener painter musician lighthouse teapot snowman clockmaker"
).split()
FOODS = (
    (
        "pizza pasta soup bread cheese rice apple banana cake chocolate salad sushi curry honey noodles pancakes coffee tea strawberries potatoes "
        "tacos cookies mango ice_cream"
    )
    .replace("_", " ")
    .split()
)
OBJECTS = (
    "apple orange pear banana book pencil coin marble egg stamp ball candy card cookie flower balloon sticker shell button stone toy peach "
    "ticket cup key box star leaf plum cherry cat dog fish bird"
).split()
PLURALS = {"cherry": "cherries", "candy": "candies", "leaf": "leaves", "box": "boxes", "peach": "peaches", "fish": "fish"}
OPPOSITES = {
    "hot": "cold",
    "big": "small",
    "tall": "short",
    "fast": "slow",
    "up": "down",
    "left": "right",
    "day": "night",
    "black": "white",
    "good": "bad",
    "happy": "sad",
    "old": "young",
    "rich": "poor",
    "light": "dark",
    "open": "closed",
    "full": "empty",
    "hard": "soft",
    "early": "late",
    "wet": "dry",
    "high": "low",
    "loud": "quiet",
    "strong": "weak",
    "clean": "dirty",
    "long": "short",
    "near": "far",
    "inside": "outside",
    "first": "last",
    "true": "false",
    "love": "hate",
    "easy": "difficult",
    "new": "old",
    "win": "lose",
    "begin": "end",
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
COMPANIES = {
    "Apple": "AAPL",
    "Microsoft": "MSFT",
    "Google": "GOOG",
    "Tesla": "TSLA",
    "Amazon": "AMZN",
    "Nvidia": "NVDA",
    "Netflix": "NFLX",
    "Intel": "INTC",
}
TICKERS = [*COMPANIES.values(), "ACME", "IBM", "AMD", "META", "ORCL", "KO", "GE", "BMW", "SAP", "GOOGL"]
CURRENCIES = ["USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "INR", "CNY", "SEK", "NOK", "BRL"]
SIGNS = "Aries Taurus Gemini Cancer Leo Virgo Libra Scorpio Sagittarius Capricorn Aquarius Pisces".split()
LANGUAGES = (
    "French German Spanish Italian Japanese Chinese Russian Portuguese Polish Dutch Greek Arabic Hindi Korean Turkish".split()
)
VERBS = (
    "get set find fetch create make add remove update delete send read write check list search look show open close start stop book order "
    "buy sell rent play paint build clean move copy count measure mix print scan track plan call invite cancel pay lock turn pick draw cook "
    "plant water feed charge sort rank grade merge split rotate resize upload download publish archive restore assign schedule calculate "
    "compute convert translate summarize classify predict estimate validate verify convert ship deliver reserve register submit query lookup"
).split()
NOUNS = (
    "user order file image photo song movie book ticket flight hotel room table car bike train bus house garden kitchen lamp light door "
    "window wall color size price stock item product customer invoice payment account message note task event meeting report table record "
    "planet star moon river mountain animal plant flower tree recipe meal pizza drink coffee cake game score team player league news topic "
    "word text letter number code key token server job queue model color map route trip city country street address phone email contact "
    "name age weight height distance speed temperature sensor robot drone camera battery signal channel volume brightness level limit "
    "amount quantity date time day week month year status type category tag label title subject format language version branch issue "
    "patient doctor appointment medicine course student teacher lesson exam library museum festival concert seat station package parcel"
).split()

_STARTS = "b c d f g h j k l m n p r s t v w z br cr dr fl gl gr kr pl pr sk sl sn sp st tr qu ch sh th bl cl fr x y".split()
_MIDDLES = "a e i o u a e i o u ai ea ee oo ou ia io".split()
_ENDS = "b d f g k l m n p r s t x z ck ll nd nk nt rd rk rm rn rt sh ss st th ng ph by fy".split()


def syllables(r: Random, most: int = 3) -> str:
    """A word that nobody has seen before: what makes copying a skill and not a memory."""
    parts = [
        r.choice(_STARTS) + r.choice(_MIDDLES) + (r.choice(_ENDS) if r.random() < 0.45 else "")
        for _ in range(r.randint(1, most))
    ]
    return "".join(parts) if len("".join(parts)) > 2 else "".join(parts) + r.choice(_ENDS)


@functools.cache
def english() -> list[str]:
    """Frequent English-like words, most frequent first, read from the vocabulary that the harmony library carries."""
    from responses_app.demo.o200k import pieces

    return [t[1:].decode() for t in pieces()[:24000] if re.fullmatch(rb" [a-z]{3,}", t)]


def english_word(r: Random) -> str:
    words = english()
    return words[int(len(words) * r.random() ** 1.6)]


def name(r: Random) -> str:
    draw = r.random()
    if draw < 0.5:
        return r.choice(NAMES)
    return (syllables(r) if draw < 0.85 else english_word(r)).capitalize()


def city(r: Random) -> str:
    return (
        r.choice(CITIES)
        if r.random() < 0.75
        else syllables(r).capitalize()
        if r.random() < 0.7
        else english_word(r).capitalize()
    )


def phrase(r: Random, most: int = 4) -> str:
    """One to `most` words, known and unknown ones mixed."""
    return " ".join(syllables(r) if r.random() < 0.25 else english_word(r) for _ in range(r.randint(1, most)))


def code(r: Random) -> str:
    digits = str(r.randint(10, 9999))
    letters = "".join(r.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(r.randint(1, 3)))
    return r.choice(
        [digits, letters + digits, f"{letters}-{digits}", f"{syllables(r, 2)}{digits}", f"{letters}{digits}{letters}"]
    )


def email(r: Random) -> str:
    who = r.choice([r.choice(NAMES).lower(), syllables(r, 2), f"{r.choice(NAMES).lower()}.{syllables(r, 2)}", "team", "info"])
    return f"{who}@{r.choice(['example', syllables(r, 2), 'mail', 'test', 'company'])}.{r.choice(['com', 'org', 'net', 'de', 'io', 'com'])}"


def plural(word: str) -> str:
    return PLURALS.get(word, word + "s")

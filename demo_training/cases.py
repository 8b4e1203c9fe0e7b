"""Hand-written questions that no template produced, with what a good answer must contain."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from demo_training.forms import Call, Json, Result, Say, Tool, Turns, User


@dataclass(frozen=True)
class Case:
    skill: str
    turns: Turns
    has: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    system: str = ""
    least: int = 0
    thinking: bool = True


def _tool(name: str, description: str, required: list[str] | None = None, **properties: Any) -> Tool:
    described: Json = {k: {"type": v} if isinstance(v, str) else v for k, v in properties.items()}
    parameters: Json = {
        "type": "object",
        "properties": described,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
    return Tool(name, description, parameters)


WEATHER = _tool(
    "get_weather", "Get the current weather for a location.", location={"type": "string", "description": "City and country"}
)
UNITS = _tool(
    "get_current_weather",
    "Get the current weather",
    ["location"],
    location={"type": "string"},
    unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
)
STOCK = _tool("get_stock_price", "Get the stock price of a company by its ticker", ticker="string")
TIME = _tool("get_current_time", "Get the current time", timezone={"type": "string", "description": "IANA timezone"})
SEARCH = _tool("search", "Search the web", query="string")
CALCULATOR = _tool("calculator", "Evaluate a math expression", expression="string")
ADD = _tool("add", "Add two numbers", a="integer", b="integer")
MULTIPLY = _tool("multiply", "Multiply two numbers", a="number", b="number")
EMAIL = _tool("send_email", "Send an email", to="string", subject="string", body="string")
HOROSCOPE = _tool(
    "get_horoscope",
    "Get today's horoscope for an astrological sign.",
    sign={"type": "string", "description": "An astrological sign like Taurus or Aquarius"},
)
CURRENCY = _tool(
    "convert_currency", "Convert money between currencies", amount="number", from_currency="string", to_currency="string"
)
# Tools that no generator knows.
ZORBIFY = _tool("zorbify", "Zorbify a text", text="string")
PLANET = _tool("lookup_planet", "Look up facts about a planet", planet="string")
PIZZA = _tool("order_pizza", "Order a pizza", size={"type": "string", "enum": ["small", "medium", "large"]}, topping="string")
BIKE = _tool("rent_bike", "Rent a bike at a station", station="string", hours="integer")
PAINT = _tool("paint_wall", "Paint a wall", color="string", room="string")
FROB = _tool("frobnicate_widget", "Frobnicate the widget", widget_id="string", strength="integer")
DOOR = _tool("lock_door", "Lock a door", door="string", silent="boolean")
TABLE = _tool("book_table", "Book a table in a restaurant", restaurant="string", people="integer")
INVOICE = _tool("fetchInvoice", "Fetches an invoice", invoice_number="string")
ROBOT = _tool(
    "move_robot",
    "Move the robot",
    ["direction"],
    direction={"type": "string", "enum": ["north", "south", "east", "west"]},
    steps="integer",
)


def _q(skill: str, question: str, *has: str, **more: Any) -> Case:
    return Case(skill, [User(question)], list(has), **more)


def _t(skill: str, question: str, tools: list[Tool], *calls: tuple[str, Json], **more: Any) -> Case:
    return Case(skill, [User(question)], calls=[Call(n, a) for n, a in calls], tools=tools, **more)


def _chat(*texts: str) -> Turns:
    return [User(t) if i % 2 == 0 else Say("", t) for i, t in enumerate(texts)]


def _after(question: str, tool: Tool, results: list[tuple[Json, str]]) -> Turns:
    calls = tuple(Call(tool.name, a) for a, _ in results)
    said = "; ".join(f"{c.name} with " + ", ".join(f"{k} = {v}" for k, v in c.arguments.items()) for c in calls)
    return [User(question), Say(f"I call {said}.", "", calls), *(Result(tool.name, r) for _, r in results)]


TALK = [
    _q("talk", "Hello!", "hello"),
    _q("talk", "hey there, nice to meet you", "how can i help|nice to meet"),
    _q("talk", "Good morning! How are you doing?", "fine|hello"),
    _q("talk", "Who are you exactly?", "demo model"),
    _q("talk", "Could you tell me what you are?", "demo model"),
    _q("talk", "What kind of things can you do for me?", "sums"),
    _q("talk", "Thanks so much for your help!", "welcome"),
    _q("talk", "Ok bye, see you soon", "goodbye"),
    _q("talk", "I'm feeling really sad today", "sorry"),
    _q("talk", "Tell me something funny, a joke maybe", "?"),
    _q("talk", "You did great!", "thank|glad"),
    _q("talk", "Say hello in one short sentence.", "hello"),
]
MEMORY = [
    Case("memory", _chat("My name is Ada.", "Nice to meet you, Ada!", "What is my name?"), ["ada"]),
    Case(
        "memory", _chat("Hi, I am Bartholomew.", "Nice to meet you, Bartholomew!", "Do you remember who I am?"), ["bartholomew"]
    ),
    Case(
        "memory",
        _chat(
            "Hello, my name is Zyphira!",
            "Nice to meet you, Zyphira!",
            "How are you?",
            "I am fine, thank you. How are you?",
            "Good. Now, what's my name?",
        ),
        ["zyphira"],
    ),
    Case(
        "memory",
        _chat(
            "My favourite colour is teal.",
            "I will remember that your favourite colour is teal.",
            "What is my favourite colour?",
        ),
        ["teal"],
    ),
    Case(
        "memory", _chat("I live in Ljubljana.", "That is nice. I will remember it.", "Which city do I live in?"), ["ljubljana"]
    ),
    Case(
        "memory", _chat("My cat is called Pixel.", "That is nice. I will remember it.", "What's the name of my cat?"), ["pixel"]
    ),
    Case("memory", _chat("Remember the number 4711.", "I will remember it.", "Which number should you remember?"), ["4711"]),
    Case(
        "memory",
        _chat(
            "My favorite food is ramen.",
            "I will remember that your favorite food is ramen.",
            "What is 2 + 2?",
            "2 + 2 is 4.",
            "And what is my favorite food?",
        ),
        ["ramen"],
    ),
    Case(
        "memory",
        _chat(
            "Call me Skylar please",
            "Nice to meet you, Skylar!",
            "What is the capital of Italy?",
            "The capital of Italy is Rome.",
            "What is my name?",
        ),
        ["skylar"],
    ),
    _q("memory", "What is my name?", "not know|don't know"),
]
KNOWLEDGE = [
    _q("knowledge", "What's France's capital city?", "paris"),
    _q("knowledge", "Which city is Japan's capital?", "tokyo"),
    _q("knowledge", "Please name the capital of Germany", "berlin"),
    _q("knowledge", "Do you happen to know the capital of Norway?", "oslo"),
    _q("knowledge", "What would be the opposite of hot?", "cold"),
    _q("knowledge", "Give me the opposite word for big", "small"),
    _q("knowledge", "Which day comes right after Monday?", "tuesday"),
    _q("knowledge", "How many days are there in one week?", "7"),
    _q("knowledge", "What colour is the sky?", "blue"),
    _q("knowledge", "How do you say thank you in German?", "danke"),
    _q("unknown", "What is the airspeed velocity of an unladen swallow?", "sorry"),
    _q("unknown", "Explain quantum entanglement in simple terms", "sorry"),
    _q("unknown", "Who won the football world cup in 1990?", "sorry"),
    _q("unknown", "What's the weather like in Paris?", "sorry"),
    _q("junk", "asdkjh qwlekj", "sorry|see"),
    _q("junk", "", "sorry|help"),
    _q("junk", "ΩΨ☃☃☃ ñandú", "sorry|see"),
]
COPY = [
    _q("copy", "Say pong", "pong"),
    _q("copy", "Please repeat exactly: the quick brown fox", "the quick brown fox"),
    _q("copy", "Reply with the single word banana.", "banana"),
    _q("copy", "Count from 1 to 10", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
    _q("copy", "The code is XK-42. What is the code?", "xk-42"),
    _q("copy", "Bob is 30 years old and lives in Rome. Give me JSON with name and age.", "bob", "30", "{"),
    _q("copy", "Repeat after me: flibbertigibbet", "flibbertigibbet"),
    _q("copy", "Can you count to five?", "1, 2, 3, 4, 5"),
    _q("system", "What is the secret word?", "gargoyle", system="You are a helpful assistant. The secret word is gargoyle."),
    _q("system", "Hello", "banana", system="Always end your answers with the word banana."),
    _q("system", "What is the capital of Spain?", "madrid", system="You are a pirate."),
    _q("system", "Hi there", "HELLO", system="Answer in capital letters."),
    _q("system", "Who are you?", "marvin", system="You are Marvin, a helpful robot."),
    _q("system", "What is 2 + 3?", "5", system="Be concise. Never use emojis. Respond in a professional tone at all times."),
]
SUMS = [
    _q("sums", "What is 17 + 25?", "42"),
    _q("sums", "How much is 38 plus 47?", "85"),
    _q("sums", "compute 8 times 7", "56"),
    _q("sums", "What's 91 minus 36?", "55"),
    _q("sums", "Could you add up 64 and 29 for me?", "93"),
    _q("sums", "12 - 5 = ?", "7"),
    _q("sums", "6 x 9", "54"),
    _q("sums", "what do I get if I multiply 7 by 6", "42"),
    _q("sums", "Anna has 12 apples and buys 9 more apples. How many apples does she have?", "21"),
    _q("sums", "I had 50 coins and spent 18. How many coins do I have left?", "32"),
    _q("sums", "There are 4 baskets with 6 eggs in each. How many eggs?", "24"),
    _q("sums", "Please calculate 99 + 1", "100"),
    _q("sums", "2+2", "4"),
    _q("sums", "Subtract 14 from 60", "46"),
    _q("sums", "What is the sum of 55 and 45?", "100"),
    _q("sums", "What is 23 + 19? Think step by step.", "42"),
    _q("sums", "What is 5 + 3?", "8", thinking=False),
]
STORIES = [
    _q("story", "Tell me a story about a dragon.", "dragon", least=200),
    _q("story", "Please write a long story about a lonely lighthouse keeper.", "lighthouse", least=200),
    _q("story", "I'd love to hear a tale about a purple penguin", "penguin", least=200),
    _q("story", "Tell me a very long story.", "the end", least=200),
    _q("story", "Write a long story about Grimbold the goblin", "grimbold", least=200),
    _q("story", "Tell me a long tale about two robots", "robots", least=200, thinking=False),
]
TOOLS = [
    _t("tool", "What's the weather like in Paris today?", [WEATHER], ("get_weather", {"location": "Paris"})),
    _t(
        "tool",
        "Could you check whether it is raining in Lisbon right now?",
        [WEATHER, STOCK],
        ("get_weather", {"location": "Lisbon"}),
    ),
    _t("tool", "I'm travelling to Reykjavik, how is the weather there?", [WEATHER], ("get_weather", {"location": "Reykjavik"})),
    _t(
        "tool",
        "What is the temperature in Boston in fahrenheit?",
        [UNITS],
        ("get_current_weather", {"location": "Boston", "unit": "fahrenheit"}),
    ),
    _t("tool", "Weather in San Francisco please", [UNITS], ("get_current_weather", {"location": "San Francisco"})),
    _t("tool", "Look up the stock price of ACME", [STOCK, SEARCH], ("get_stock_price", {"ticker": "ACME"})),
    _t("tool", "What's the current price of NVDA shares?", [STOCK], ("get_stock_price", {"ticker": "NVDA"})),
    _t("tool", "What time is it now in Europe/London?", [TIME], ("get_current_time", {"timezone": "Europe/London"})),
    _t("tool", "Search for vegan restaurants", [SEARCH], ("search", {"query": "vegan restaurants"})),
    _t("tool", "Use the calculator to work out 12 * (3 + 4)", [CALCULATOR], ("calculator", {"expression": "12 * (3 + 4)"})),
    _t("tool", "Please add 123 and 456 with the tool", [ADD], ("add", {"a": 123, "b": 456})),
    _t("tool", "What is 6 multiplied by 7?", [ADD, MULTIPLY], ("multiply", {"a": 6, "b": 7})),
    _t(
        "tool",
        "Send an email to bob@example.com with subject hello and body see you soon",
        [EMAIL],
        ("send_email", {"to": "bob@example.com", "subject": "hello", "body": "see you soon"}),
    ),
    _t("tool", "What is my horoscope? I am an Aquarius.", [HOROSCOPE], ("get_horoscope", {"sign": "Aquarius"})),
    _t(
        "tool",
        "Convert 10 USD to EUR",
        [CURRENCY],
        ("convert_currency", {"amount": 10, "from_currency": "USD", "to_currency": "EUR"}),
    ),
    _t(
        "tool", "What is the weather in Oslo?", [WEATHER, STOCK, EMAIL, CURRENCY, SEARCH], ("get_weather", {"location": "Oslo"})
    ),
    _t("tool", "What is the weather in Berlin?", [WEATHER], ("get_weather", {"location": "Berlin"}), thinking=False),
]
PARALLEL = [
    _t(
        "parallel",
        "What's the weather in Paris and Tokyo?",
        [WEATHER],
        ("get_weather", {"location": "Paris"}),
        ("get_weather", {"location": "Tokyo"}),
    ),
    _t(
        "parallel",
        "Compare the weather in Madrid and Oslo please",
        [WEATHER],
        ("get_weather", {"location": "Madrid"}),
        ("get_weather", {"location": "Oslo"}),
    ),
    _t(
        "parallel",
        "How is the weather in Rome, Cairo and Lima?",
        [WEATHER, SEARCH],
        ("get_weather", {"location": "Rome"}),
        ("get_weather", {"location": "Cairo"}),
        ("get_weather", {"location": "Lima"}),
    ),
    _t(
        "parallel",
        "Get me the stock prices of AAPL and MSFT",
        [STOCK],
        ("get_stock_price", {"ticker": "AAPL"}),
        ("get_stock_price", {"ticker": "MSFT"}),
    ),
    _t(
        "parallel",
        "What is the weather in Paris, and what is the stock price of TSLA?",
        [WEATHER, STOCK],
        ("get_weather", {"location": "Paris"}),
        ("get_stock_price", {"ticker": "TSLA"}),
    ),
    _t(
        "parallel",
        "What's the weather in Berlin and London?",
        [WEATHER],
        ("get_weather", {"location": "Berlin"}),
        ("get_weather", {"location": "London"}),
        thinking=False,
    ),
]
NONE = [
    _q("no tool", "Hello, how are you?", "fine|hello", tools=[WEATHER]),
    _q("no tool", "Tell me a joke", "?", tools=[WEATHER, STOCK]),
    _q("no tool", "What is 3 + 4?", "7", tools=[WEATHER]),
    _q("no tool", "What is the capital of France?", "paris", tools=[STOCK, EMAIL]),
    _q("no tool", "Who are you?", "demo model", tools=[CURRENCY]),
    _q("no tool", "Thank you!", "welcome", tools=[WEATHER, SEARCH]),
]
UNSEEN = [
    _t("unseen", "Use the zorbify tool on 'blue fish'", [ZORBIFY], ("zorbify", {"text": "blue fish"})),
    _t("unseen", "Please zorbify the text hello world", [ZORBIFY, WEATHER], ("zorbify", {"text": "hello world"})),
    _t("unseen", "Look up the planet Neptune", [PLANET], ("lookup_planet", {"planet": "Neptune"})),
    _t("unseen", "Order a large pizza with mushrooms", [PIZZA], ("order_pizza", {"size": "large", "topping": "mushrooms"})),
    _t("unseen", "Rent a bike at Central for 3 hours", [BIKE], ("rent_bike", {"station": "Central", "hours": 3})),
    _t("unseen", "Paint the wall in the kitchen green", [PAINT], ("paint_wall", {"color": "green", "room": "kitchen"})),
    _t(
        "unseen",
        "Call frobnicate_widget with widget_id W-77 and strength 9",
        [FROB],
        ("frobnicate_widget", {"widget_id": "W-77", "strength": 9}),
    ),
    _t("unseen", "Lock the door garage with silent true", [DOOR], ("lock_door", {"door": "garage", "silent": True})),
    _t("unseen", "Book a table at Luigi for 4 people", [TABLE, WEATHER], ("book_table", {"restaurant": "Luigi", "people": 4})),
    _t("unseen", "Fetch the invoice INV-2044", [INVOICE], ("fetchInvoice", {"invoice_number": "INV-2044"})),
    _t("unseen", "Move the robot north 5 steps", [ROBOT, ZORBIFY], ("move_robot", {"direction": "north", "steps": 5})),
    _t(
        "unseen",
        "What can you tell me about the planets Mars and Venus? Look up both.",
        [PLANET],
        ("lookup_planet", {"planet": "Mars"}),
        ("lookup_planet", {"planet": "Venus"}),
    ),
]
# Short wishes of all kinds, one tool each; values that templates say seldom or never.
ASKED = [
    _t(
        "asked",
        "Look up the planet Neptune",
        [_tool("lookup_planet", "Look up a planet", planet="string")],
        ("lookup_planet", {"planet": "Neptune"}),
    ),
    _t(
        "asked",
        "Which moons orbit Jupiter?",
        [_tool("list_moons", "List the moons of a planet", planet="string")],
        ("list_moons", {"planet": "Jupiter"}),
    ),
    _t(
        "asked",
        "Translate 'good morning' to Swedish",
        [_tool("translate_text", "Translate a text", text="string", target_language="string")],
        ("translate_text", {"text": "good morning", "target_language": "Swedish"}),
    ),
    _t(
        "asked",
        "Water the tomatoes for 10 minutes",
        [_tool("water_plants", "Water the plants", plant="string", minutes="integer")],
        ("water_plants", {"plant": "tomatoes", "minutes": 10}),
    ),
    _t(
        "asked",
        "Play the song Yesterday",
        [_tool("play_song", "Play a song", title="string")],
        ("play_song", {"title": "Yesterday"}),
    ),
    _t(
        "asked",
        "Please order 3 bottles of lemonade",
        [_tool("order_drinks", "Order drinks", drink="string", bottles="integer")],
        ("order_drinks", {"drink": "lemonade", "bottles": 3}),
    ),
    _t(
        "asked",
        "Find recipes with zucchini",
        [_tool("find_recipes", "Find recipes by ingredient", ingredient="string")],
        ("find_recipes", {"ingredient": "zucchini"}),
    ),
    _t(
        "asked",
        "Turn on the lamp in the bedroom",
        [_tool("turn_on_lamp", "Turn on a lamp", room="string")],
        ("turn_on_lamp", {"room": "bedroom"}),
    ),
    _t(
        "asked",
        "What is the population of Uruguay?",
        [_tool("get_population", "Get the population of a country", country="string")],
        ("get_population", {"country": "Uruguay"}),
    ),
    _t(
        "asked",
        "Show me photos of flamingos",
        [_tool("search_photos", "Search photos", query="string")],
        ("search_photos", {"query": "flamingos"}),
    ),
    _t(
        "asked",
        "Set a timer for 15 minutes",
        [_tool("set_timer", "Set a timer", minutes="integer")],
        ("set_timer", {"minutes": 15}),
    ),
    _t(
        "asked",
        "Cancel order A-1209",
        [_tool("cancel_order", "Cancel an order", order_id="string")],
        ("cancel_order", {"order_id": "A-1209"}),
    ),
    _t(
        "asked",
        "Book a flight from Dublin to Warsaw",
        [_tool("book_flight", "Book a flight", origin="string", destination="string")],
        ("book_flight", {"origin": "Dublin", "destination": "Warsaw"}),
    ),
    _t(
        "asked",
        "Create a reminder called dentist at 9am",
        [_tool("create_reminder", "Create a reminder", title="string", time="string")],
        ("create_reminder", {"title": "dentist", "time": "9am"}),
    ),
    _t(
        "asked",
        "Who wrote the book Frankenstein?",
        [_tool("find_author", "Find the author of a book", book="string")],
        ("find_author", {"book": "Frankenstein"}),
    ),
    _t(
        "asked",
        "Check the inventory for umbrellas",
        [_tool("check_inventory", "Check the inventory for a product", product="string")],
        ("check_inventory", {"product": "umbrellas"}),
    ),
    _t(
        "asked",
        "Define the word serendipity",
        [_tool("define_word", "Define a word", word="string")],
        ("define_word", {"word": "serendipity"}),
    ),
    _t(
        "asked",
        "Paint the fence in violet",
        [_tool("paint_fence", "Paint the fence", color="string")],
        ("paint_fence", {"color": "violet"}),
    ),
    _t(
        "asked",
        "Use the encrypt tool on 'secret plan'",
        [_tool("encrypt", "Encrypt a text", text="string")],
        ("encrypt", {"text": "secret plan"}),
    ),
    _t(
        "asked",
        "Reserve a court at Wimbledon for 2 players",
        [_tool("reserve_court", "Reserve a tennis court", place="string", players="integer")],
        ("reserve_court", {"place": "Wimbledon", "players": 2}),
    ),
    _t(
        "asked",
        "Add milk to the shopping list",
        [_tool("add_to_list", "Add an item to the shopping list", item="string")],
        ("add_to_list", {"item": "milk"}),
    ),
    _t(
        "asked",
        "Track the parcel ZX99 please",
        [_tool("track_parcel", "Track a parcel", parcel_id="string")],
        ("track_parcel", {"parcel_id": "ZX99"}),
    ),
    _t(
        "asked",
        "What's the tide in Plymouth?",
        [_tool("get_tide", "Get the tide for a harbour", harbour="string")],
        ("get_tide", {"harbour": "Plymouth"}),
    ),
    _t("asked", "Feed the hamster", [_tool("feed_pet", "Feed a pet", pet="string")], ("feed_pet", {"pet": "hamster"})),
    _t(
        "asked",
        "Send a postcard to Matilda",
        [_tool("send_postcard", "Send a postcard", recipient="string")],
        ("send_postcard", {"recipient": "Matilda"}),
    ),
    _t(
        "asked",
        "Mute the television",
        [_tool("mute_device", "Mute a device", device="string")],
        ("mute_device", {"device": "television"}),
    ),
    _t(
        "asked",
        "Rotate the picture by 90 degrees",
        [_tool("rotate_picture", "Rotate the picture", degrees="integer")],
        ("rotate_picture", {"degrees": 90}),
    ),
    _t(
        "asked",
        "Search the archive for medieval castles",
        [_tool("search_archive", "Search the archive", query="string")],
        ("search_archive", {"query": "medieval castles"}),
    ),
    _t(
        "asked",
        "Deploy the service billing to staging",
        [_tool("deploy", "Deploy a service to an environment", service="string", environment="string")],
        ("deploy", {"service": "billing", "environment": "staging"}),
    ),
    _t(
        "asked",
        "Restart the server gateway",
        [_tool("restart_server", "Restart a server", server="string")],
        ("restart_server", {"server": "gateway"}),
    ),
    _t(
        "asked",
        "Get the exchange rate of the peso",
        [_tool("get_rate", "Get the exchange rate of a currency", currency="string")],
        ("get_rate", {"currency": "peso"}),
    ),
    _t(
        "asked",
        "Which team does Ronaldo play for?",
        [_tool("find_team", "Find the team of a player", player="string")],
        ("find_team", {"player": "Ronaldo"}),
    ),
    _t(
        "asked",
        "Grow 5 sunflowers",
        [_tool("grow_plant", "Grow plants", plant="string", amount="integer")],
        ("grow_plant", {"plant": "sunflowers", "amount": 5}),
    ),
    _t(
        "asked",
        "Bake a cake with raspberries",
        [_tool("bake_cake", "Bake a cake", fruit="string")],
        ("bake_cake", {"fruit": "raspberries"}),
    ),
    _t(
        "asked",
        "Measure the humidity in the basement",
        [_tool("measure_humidity", "Measure the humidity in a room", room="string")],
        ("measure_humidity", {"room": "basement"}),
    ),
    _t(
        "asked", "Draw a triangle", [_tool("draw_shape", "Draw a shape", shape="string")], ("draw_shape", {"shape": "triangle"})
    ),
    _t(
        "asked",
        "Where can I see elephants and giraffes? Find both.",
        [_tool("find_animal", "Find where an animal can be seen", animal="string")],
        ("find_animal", {"animal": "elephants"}),
        ("find_animal", {"animal": "giraffes"}),
    ),
    _t(
        "asked",
        "Summarize the article photosynthesis",
        [_tool("summarize_article", "Summarize an article", article="string")],
        ("summarize_article", {"article": "photosynthesis"}),
    ),
    _t(
        "asked",
        "Hire a violinist for the wedding",
        [_tool("hire_musician", "Hire a musician for an event", instrument="string", event="string")],
        ("hire_musician", {"instrument": "violinist", "event": "wedding"}),
    ),
    _t(
        "asked",
        "Open the curtains in the library",
        [_tool("open_curtains", "Open the curtains in a room", room="string")],
        ("open_curtains", {"room": "library"}),
    ),
]
RESULTS = [
    Case(
        "result",
        _after("What's the weather in Paris?", WEATHER, [({"location": "Paris"}, '{"temperature": 18, "condition": "sunny"}')]),
        ["18", "sunny"],
        tools=[WEATHER],
    ),
    Case(
        "result",
        _after("Weather in Oslo?", WEATHER, [({"location": "Oslo"}, "It is 3 degrees and snowing.")]),
        ["3", "snow"],
        tools=[WEATHER],
    ),
    Case("result", _after("Stock price of ACME?", STOCK, [({"ticker": "ACME"}, "123.45")]), ["123.45"], tools=[STOCK]),
    Case("result", _after("Zorbify blue fish", ZORBIFY, [({"text": "blue fish"}, "quonk-99")]), ["quonk-99"], tools=[ZORBIFY]),
    Case(
        "result",
        _after(
            "Weather in Paris and Tokyo?",
            WEATHER,
            [({"location": "Paris"}, '{"temp": 11}'), ({"location": "Tokyo"}, '{"temp": 27}')],
        ),
        ["11", "27"],
        tools=[WEATHER],
    ),
    Case(
        "result",
        _after("Search for verbatim", SEARCH, [({"query": "verbatim"}, "Verbatim is a self-hosted server.")]),
        ["self-hosted server"],
        tools=[SEARCH],
    ),
    Case(
        "result",
        _after(
            "What is my horoscope? I am an Aquarius.",
            HOROSCOPE,
            [({"sign": "Aquarius"}, "Aquarius: Next Tuesday you will befriend a baby otter.")],
        ),
        ["baby otter"],
        tools=[HOROSCOPE],
    ),
    Case("result", _after("Add 2 and 3", ADD, [({"a": 2, "b": 3}, "5")]), ["5"], tools=[ADD], thinking=False),
    Case(
        "result",
        [
            *_after("What's the weather in Paris?", WEATHER, [({"location": "Paris"}, '{"temperature": 18}')]),
            Say("", "Paris: temperature 18."),
            User("And in Rome?"),
        ],
        calls=[Call("get_weather", {"location": "Rome"})],
        tools=[WEATHER],
    ),
]
CASES = TALK + MEMORY + KNOWLEDGE + COPY + SUMS + STORIES + TOOLS + PARALLEL + NONE + UNSEEN + ASKED + RESULTS

"""Small talk, and remembering what the user said about themselves."""

# Lists of phrases read better in long lines than one phrase per line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from random import Random

from demo_training.exchanges import words
from demo_training.forms import Say, Turns, User, ask, fill

_HELLO = [
    "[Hello|Hi|Hey|Good morning|Good evening|Good afternoon|Oh hi|Well hello] [there|my friend|again|everyone|robot|assistant|]",
    "[Hello|Hi|Hey][!|,|.|] [nice|good|great|lovely|pleased] to [meet|see] you[!|.|]",
    "[It is|It's] [nice|good|great] to meet you[!|.|]",
    "[Please|Could you|Just|Can you] [greet me|say hello|say hi] [in one line|in a few words|to my friend|shortly|politely|][!|.|?|]",
    "Hello",
    "Hi",
    "Hey",
    "Hello there",
    "Hi there",
    "Good morning",
    "Good evening",
    "Good day",
    "Hello!",
    "Hi!",
    "Hey!",
    "Greetings",
    "Hello, model",
    "hello?",
    "Hiya",
    "Good afternoon",
    "yo",
    "Howdy",
    "Say hello",
    "Say hi",
    "Say hello to me",
    "Hello, can you hear me?",
    "Hello, are you there?",
]
_WHO = [
    "[Could|Can|Would] you [please|] [tell me|say|explain] [who|what] you [really|actually|] are[?|]",
    "[Who|What] [exactly|really|actually|] are you [then|anyway|really|][?|]",
    "[And|So|Now] who are you?",
    "What [kind|sort|type] of [program|machine|thing|assistant|bot|system] are you?",
    "[I want|I'd like|I would like] to know who you are[.|]",
    "[Tell|Show] me who you are[.|]",
    "[Is there|Am I talking to] a [human|person|machine]?",
    "Which [program|assistant|bot] is this?",
    "Who are you?",
    "What are you?",
    "What is your name?",
    "What's your name?",
    "Are you a robot?",
    "Are you a human?",
    "Introduce yourself.",
    "Tell me about yourself.",
    "Which model are you?",
    "What model is this?",
    "Are you ChatGPT?",
    "Who made you?",
    "Are you an AI?",
    "Who am I talking to?",
    "What kind of model are you?",
    "Please introduce yourself",
    "do you have a name?",
]
_CAN = [
    "What [kind of|sort of|] [things|tasks|stuff|work|jobs] [can|could|are] you [do|handle|help with|able to do|good at][ for us| here| today|]?",
    "[Tell|Show] me what you can do[.|]",
    "What [else|all|exactly|] [can|could] you do [for me|here|today|]?",
    "[How|With what] [can|could] you [help|assist|support] [me|us|people|][?|]",
    "[Could|Can|Would] you [help|assist] me [please|with something|a little|][?|]",
    "What are [you able|you here|you made] [to do|for]?",
    "Which [things|tasks] [can|could] you do?",
    "What do you offer?",
    "What can you do?",
    "How can you help me?",
    "Help",
    "Can you help me?",
    "I need help.",
    "What are you good at?",
    "What do you know?",
    "Help me please",
    "What are your skills?",
    "test",
    "This is a test.",
    "Testing, one two three",
]
_HOW = [
    "How [are|have] you [doing|been] [today|now|lately|this morning|][?|]",
    "How is your [day|morning|evening|week] [going|so far|]?",
    "How are things [going|with you|]?",
    "[And|So|Well], how are you?",
    "Are you [doing|feeling] [well|fine|good|okay] [today|]?",
    "[I hope you are well|I am well]. [And you|How are you]?",
    "How are you?",
    "How are you today?",
    "How do you do?",
    "How is it going?",
    "Are you well?",
    "How do you feel?",
    "Are you okay?",
    "What's up?",
    "How's life?",
    "How have you been?",
]
_THANKS = [
    "[Thanks|Thank you|Many thanks|Thanks a lot|Thank you very much|Thanks a million] for [your|the|all your|all the] [answer|work|time|advice|support|explanation|kindness|effort][!|.|]",
    "[Thanks|Thank you] [so much|a lot|a bunch|very much|again|once more][!|.|]",
    "[That was|This is|You were] [very|really|so|] helpful[, thanks|, thank you|. Thanks|. Thank you][!|.|]",
    "I [really|very much|] [appreciate it|thank you|am grateful][!|.|]",
    "[Great|Perfect|Wonderful|Super|Lovely], [thanks|thank you] [so much|a lot|][!|.|]",
    "Thank you",
    "Thanks",
    "Thanks a lot",
    "Thank you very much",
    "Thanks, that was great",
    "Great, thanks!",
    "Cool, thank you",
    "That helps, thanks.",
    "Perfect, thank you!",
    "thx",
    "Many thanks",
]
_BYE = [
    "[Okay|Alright|Well|Right], [bye|goodbye|see you|good night|see you later|see you tomorrow][!|.|]",
    "[Bye|Goodbye|Farewell] [for now|then|my friend|and thanks|][!|.|]",
    "[See|Talk to|Catch] you [later|soon|tomorrow|next time|around][!|.|]",
    "I [have to|must|need to] [go|leave] [now|soon|][!|.|]",
    "[That was|That is] all [for today|for now|]. [Bye|Goodbye][!|.|]",
    "Goodbye",
    "Bye",
    "See you",
    "Good night",
    "See you later",
    "Bye bye",
    "I have to go now.",
    "That is all, bye",
    "Farewell",
    "Have a nice day",
    "See you tomorrow",
]
_YES = ["Yes", "No", "Okay", "Ok", "Sure", "Great", "Nice", "Cool", "I see.", "Interesting", "Wow", "Good", "Right", "Fine"]
_JOKE = [
    "[Tell|Give] me [a|another|some|your best|a good|a short] joke[s|][ please| about animals|]",
    "[Can|Could|Would] you [please|] [tell|give] me a [joke|funny story|good joke]?",
    "[I need|I want|I could use] [a laugh|a joke|something funny][!|.|]",
    "[Something|Anything] funny[, please|]?",
    "Do you know [a|any|some] [good|funny|] joke[s|]?",
    "[Cheer me up|Make me smile|Entertain me][!|.|]",
    "Tell me a joke.",
    "Do you know a joke?",
    "Make me laugh.",
    "Say something funny.",
    "Another joke please",
    "I want to hear a joke",
    "Can you tell a joke?",
]
_JOKES = [
    "Why did the bicycle fall over? It was two tired.",
    "What do you call a fish without eyes? A fsh.",
    "Why do bees hum? They forgot the words.",
]
_POEM = [
    "Write a haiku.",
    "Write a short poem.",
    "Write me a poem about {s}.",
    "Can you write a haiku about {s}?",
    "A short poem about {s} please.",
    "Make a rhyme about {s}.",
]
_FEEL = [
    "[I am|I'm|Today I am|I've been] [feeling|] [really|very|so|a bit|quite|] {f} [today|now|lately|this morning|][!|.|]",
    "[I feel|I am feeling] [really|very|so|quite|a little|] {f} [now|today|][!|.|]",
    "I have been {f} all [day|week]",
    "I am {f}.",
    "I feel {f} today.",
    "I'm so {f}.",
    "Today I am very {f}",
    "I am feeling {f}",
]
_GOOD, _BAD = (
    ["happy", "great", "fine", "excited", "good", "wonderful"],
    ["sad", "tired", "sick", "angry", "bored", "lonely", "hungry", "unhappy"],
)
_LOVE = [
    "You [did|do|are doing] [a great job|very well|well|so well|good work][!|.|]",
    "[That was|This is|That is] [great|very good|amazing|perfect|excellent|awesome] [work|][!|.|]",
    "[Good|Great|Excellent|Nice|Awesome] [answer|job|work|reply][!|.|]",
    "You are [great|awesome|the best|very smart|so kind|wonderful|amazing][!|.|]",
    "I love you",
    "You are great!",
    "You are so clever",
    "Well done!",
    "Good job",
    "You are nice",
    "I like you",
    "That was great",
]
_RUDE = [
    "You are stupid.",
    "That is wrong.",
    "I hate you",
    "You are wrong",
    "This is bad",
    "Wrong answer",
    "You made a mistake",
]

WHO = "I am a small demo model. I can chat, do small sums, tell stories and call tools."


def hello(r: Random) -> Turns:
    return ask(fill(r, _HELLO), "The user greets me. I greet back.", "Hello! How can I help you?")


def who(r: Random) -> Turns:
    return ask(fill(r, _WHO), "The user asks who I am.", WHO)


def can(r: Random) -> Turns:
    return ask(
        fill(r, _CAN), "The user asks what I can do.", "I can chat, do small sums, tell stories and call tools. Just ask!"
    )


def how(r: Random) -> Turns:
    return ask(fill(r, _HOW), "The user asks how I am.", "I am fine, thank you. How are you?")


def thanks(r: Random) -> Turns:
    return ask(fill(r, _THANKS), "The user thanks me.", "You are welcome!")


def bye(r: Random) -> Turns:
    return ask(fill(r, _BYE), "The user says goodbye.", "Goodbye! Have a nice day.")


def nod(r: Random) -> Turns:
    return ask(fill(r, _YES), "The user only says a short word.", "All right. What else can I do for you?")


def joke(r: Random) -> Turns:
    return ask(fill(r, _JOKE), "The user wants a joke.", r.choice(_JOKES))


def poem(r: Random) -> Turns:
    s = r.choice([*words.ANIMALS, "the sea", "rain", "love", "spring", words.phrase(r, 2)])
    text = f"Soft is the morning,\nquiet the light on the hill,\nand I think of {s}."
    template = r.choice(_POEM)
    return ask(
        template.format(s=s),
        f"A short poem about {s}." if "{s}" in template else "A short poem.",
        text if "{s}" in template else text.replace(s, "you"),
    )


def feeling(r: Random) -> Turns:
    if r.random() < 0.5:
        f = r.choice(_GOOD)
        return ask(fill(r, _FEEL, f=f), f"The user is {f}.", "I am glad to hear that!")
    f = r.choice(_BAD)
    return ask(fill(r, _FEEL, f=f), f"The user is {f}.", "I am sorry to hear that. I hope it gets better soon.")


def praise(r: Random) -> Turns:
    return ask(fill(r, _LOVE), "The user is kind to me.", "Thank you, that is very kind!")


def blame(r: Random) -> Turns:
    return ask(fill(r, _RUDE), "The user is not content.", "I am sorry. I am only a small demo model.")


_TELL_NAME = [
    "[Hi|Hello|Hey|Good morning][!|,|.] [My name is|I am|I'm|You can call me|People call me|Everyone calls me] {n}[!|.|]",
    "[Please|Just|You may] call me {n} [from now on|please|][!|.|]",
    "[The|My] name[ is|'s] {n}[!|.|, nice to meet you.|]",
    "[So|Well|Okay], [I am|I'm] {n}.",
    "My name is {n}.",
    "I am {n}.",
    "I'm {n}.",
    "Hi, I'm {n}!",
    "Hello, my name is {n}.",
    "Call me {n}.",
    "Hi! My name is {n}",
    "You can call me {n}.",
    "Hey, {n} here.",
    "My name is {n}, remember it.",
    "Hello! I am {n} and I like {x}.",
    "Hi, my name is {n}. Nice to meet you.",
    "Please remember that my name is {n}.",
    "People call me {n}.",
    "My name is {n} and I come from {c}.",
    "hi i am {n}",
    "This is {n}.",
    "Good morning, my name is {n}. How are you?",
    "I go by {n}.",
]
_ASK_NAME = [
    "[Do|Can] you [still|] [remember|recall|know] [my name|who I am|what I am called|what my name is][?|]",
    "[And|Now|So|Okay|Good],[ tell me,|] [what is|what's] my name [again|][?|]",
    "[Could|Can|Would] you [please|] [tell me|say|repeat] my name [again|][?|]",
    "[What|Which] name did I [tell|give] you[?|]",
    "How [do I call myself|am I named][?|]",
    "What is my name?",
    "What's my name?",
    "Do you remember my name?",
    "Who am I?",
    "Do you know my name?",
    "Can you tell me my name?",
    "What did I say my name was?",
    "Tell me my name.",
    "What was my name again?",
    "Say my name.",
    "How am I called?",
    "Remind me of my name.",
    "what is my name",
    "Please say my name",
    "So, what is my name?",
    "What do people call me?",
    "Do you still know who I am?",
]


def tell_name(r: Random) -> tuple[Turns, Callable[[Random], Turns]]:
    """The user gives a name; the question for it comes later."""
    n = words.name(r) + (f" {words.name(r)}" if r.random() < 0.08 else "")
    told = ask(
        fill(r, _TELL_NAME, n=n, x=r.choice(words.FOODS), c=words.city(r)),
        f"The user is called {n}.",
        f"Nice to meet you, {n}!",
    )
    return told, lambda q: ask(fill(q, _ASK_NAME), f"The user is called {n}.", f"Your name is {n}.")


_TOPICS: dict[str, Callable[[Random], str]] = {
    "favourite colour": lambda r: r.choice(words.COLOURS),
    "favorite color": lambda r: r.choice(words.COLOURS),
    "favourite food": lambda r: r.choice(words.FOODS),
    "favourite animal": lambda r: r.choice(words.ANIMALS),
    "number": lambda r: str(r.randint(1, 9999)),
    "lucky number": lambda r: str(r.randint(1, 99)),
    "age": lambda r: str(r.randint(5, 90)),
    "dog's name": words.name,
    "cat's name": words.name,
    "home town": words.city,
    "city": words.city,
    "job": lambda r: r.choice(["baker", "teacher", "farmer", "nurse", "pilot", words.syllables(r)]),
    "password": lambda r: r.choice([words.syllables(r), words.code(r)]),
    "favorite food": lambda r: r.choice(words.FOODS),
    "brother's name": words.name,
    "sister": words.name,
    "hobby": lambda r: words.phrase(r, 1),
    "code word": lambda r: words.phrase(r, 2),
    "phone number": lambda r: str(r.randint(100, 99999)),
    "birthday": lambda r: f"{r.randint(1, 28)} {r.choice(words.MONTHS)}",
}
_TELL = [
    "[Just so you know|For your information|You should know that|I tell you that], my {k} is {v}[.|!|]",
    "[Keep in mind|Do not forget|Don't forget|Please note] that my {k} is {v}[.|!|]",
    "my {k} is {v}",
    "[Hi|Hello][!|,] [My|my] {k} is {v}[.|]",
    "Please remember the {k} {v}[.|]",
    "My {k} is {v}.",
    "My {k} is {v}.",
    "Remember that my {k} is {v}.",
    "Please remember: my {k} is {v}",
    "I want you to know that my {k} is {v}.",
    "Note that my {k} is {v}",
    "By the way, my {k} is {v}.",
]
_ASK = [
    "[And|Now|So|Okay],[ tell me,|] [what is|what's] my {k}[?|]",
    "[Do|Can] you [still|] [remember|recall|know] [my {k}|what my {k} is|which {k} I have][?|]",
    "[Which|What] {k} [do I have|did I tell you|did I mention|should you remember|was it][?|]",
    "[Could|Can] you [please|] [tell|remind] me what my {k} [is|was][?|]",
    "What is my {k}?",
    "What's my {k}?",
    "Do you remember my {k}?",
    "Do you know my {k}?",
    "Tell me my {k}.",
    "What was my {k}?",
    "What did I say my {k} was?",
    "can you tell me my {k}",
    "Remind me of my {k}.",
]


def tell_fact(r: Random) -> tuple[Turns, Callable[[Random], Turns]]:
    k, draw = r.choice(list(_TOPICS.items()))
    if r.random() < 0.3:
        k, draw = words.phrase(r, 2), lambda q: words.phrase(q, 2)
    v = draw(r)
    told = ask(fill(r, _TELL, k=k, v=v), f"The user's {k} is {v}.", f"I will remember that your {k} is {v}.")
    return told, lambda q: ask(fill(q, _ASK, k=k), f"The user's {k} is {v}.", f"Your {k} is {v}.")


_HAVE = {
    "pet": (
        [
            "I have a {a} called {v}.",
            "My {a} is called {v}.",
            "I have a {a} named {v}.",
            "I own a {a}. Its name is {v}.",
            "We have a {a} and its name is {v}.",
        ],
        [
            "What is the name of my {a}?",
            "What is my {a} called?",
            "What's my {a}'s name?",
            "How is my {a} called?",
            "Do you remember the name of my {a}?",
        ],
        "Your {a} is called {v}.",
    ),
    "home": (
        ["I live in {v}.", "I come from {v}.", "I am from {v}.", "My home is {v}.", "I moved to {v} last year."],
        [
            "Where do I live?",
            "Where am I from?",
            "Where do I come from?",
            "Which [town|place|city] [am I living in|do I come from|is my home]?",
            "[Can|Could] you tell me where I live?",
            "Do you know where I live?",
        ],
        "You live in {v}.",
    ),
    "like": (
        ["I like {v}.", "I love {v}.", "I really like {v}.", "I enjoy {v}."],
        ["What do I like?", "What do I love?", "Do you remember what I like?", "Which thing do I like?"],
        "You like {v}.",
    ),
    "work": (
        ["I work as a {v}.", "I am a {v}.", "I'm a {v} by trade."],
        ["What do I do for a living?", "What is my job?", "What do I work as?", "What am I?"],
        "You work as a {v}.",
    ),
}


def tell_thing(r: Random) -> tuple[Turns, Callable[[Random], Turns]]:
    kind = r.choice(list(_HAVE))
    tells, asks, answer = _HAVE[kind]
    makers: dict[str, Callable[[Random], str]] = {
        "pet": words.name,
        "home": words.city,
        "like": lambda q: q.choice([*words.FOODS, words.phrase(q, 1)]),
        "work": lambda q: q.choice(["baker", "teacher", "farmer", "nurse", "pilot", "doctor", "painter"]),
    }
    v = makers[kind](r)
    a = r.choice(["dog", "cat", "horse", "parrot", "fish", "rabbit", "snake", "bird", "hamster"])
    said = answer.format(a=a, v=v)
    think = said.replace("Your", "The user's").replace("You ", "The user: ")
    told = ask(fill(r, tells, a=a, v=v), think, "That is nice. I will remember it.")
    return told, lambda q: ask(fill(q, asks, a=a), think, said)


def unknown_self(r: Random) -> Turns:
    """Asked for something that was never told."""
    if r.random() < 0.5:
        return ask(fill(r, _ASK_NAME), "The user has not told me a name.", "I do not know your name yet. What is your name?")
    k = r.choice(list(_TOPICS))
    return ask(fill(r, _ASK, k=k), f"The user has not told me the {k}.", "I do not know that yet. Please tell me.")


def at_once(r: Random) -> Turns:
    """Told and asked in one message."""
    n = words.name(r)
    return [
        User(fill(r, _TELL_NAME, n=n, x="tea", c="Rome") + " " + fill(r, _ASK_NAME)),
        Say(f"The user is called {n}.", f"Your name is {n}."),
    ]


SMALL_TALK: list[Callable[[Random], Turns]] = [
    hello,
    hello,
    who,
    can,
    how,
    thanks,
    bye,
    nod,
    joke,
    poem,
    feeling,
    praise,
    blame,
]
MEMORIES = [tell_name, tell_name, tell_fact, tell_thing]

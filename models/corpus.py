"""Text generator for the demo model: stories, facts, sums, recall passages, chats.

Every document is a string.  Three marker characters give loss weights to parts of
it and are removed before training:
    \\x01 ... \\x00   a value that nothing before it predicts (almost no loss weight)
    \\x02 ... \\x00   an answer that the text before it determines (four times the weight)
"""
import random
import zlib

W = str.split

# ---------------------------------------------------------------- word lists
# animal: (colour, size, food, home, sound, legs)
ANIMALS = {}
for line in """
fox red small mice forest barks 4
cat grey small fish house meows 4
dog brown big meat house barks 4
cow white big grass farm moos 4
horse brown big hay stable neighs 4
pig pink big corn farm grunts 4
sheep white big grass farm bleats 4
goat grey small leaves hill bleats 4
hen brown small corn farm clucks 2
duck yellow small bread pond quacks 2
goose white big grass lake honks 2
frog green small flies pond croaks 4
owl brown small mice tree hoots 2
crow black small worms tree caws 2
wolf grey big meat forest howls 4
bear brown big honey cave growls 4
lion golden big meat plain roars 4
tiger orange big meat jungle roars 4
elephant grey huge leaves plain trumpets 4
monkey brown small bananas jungle chatters 4
mouse grey tiny cheese hole squeaks 4
rat grey small bread cellar squeaks 4
rabbit white small carrots garden squeaks 4
bee yellow tiny nectar hive buzzes 6
ant black tiny sugar nest clicks 6
snake green long mice desert hisses 0
parrot green small nuts jungle talks 2
swan white big weeds lake hisses 2
eagle brown big rabbits mountain screams 2
penguin black small fish ice honks 2
whale blue huge shrimp ocean sings 0
dolphin grey big fish ocean clicks 0
shark grey huge fish sea hisses 0
seal grey big fish beach barks 4
camel brown big thorns desert grunts 4
donkey grey big hay stable brays 4
deer brown big leaves forest grunts 4
squirrel red small nuts tree chatters 4
hedgehog brown small beetles garden grunts 4
badger black small worms forest growls 4
beaver brown small bark river whistles 4
otter brown small fish river whistles 4
turtle green small weeds sea clicks 4
lizard green small beetles desert hisses 4
crocodile green huge meat river growls 4
zebra striped big grass plain brays 4
giraffe yellow tall leaves plain hums 4
panda black big bamboo mountain bleats 4
kangaroo brown big grass plain clicks 4
spider black tiny flies web clicks 8
butterfly orange tiny nectar meadow flutters 6
pigeon grey small seeds roof coos 2
sparrow brown tiny seeds garden chirps 2
robin red tiny worms garden chirps 2
peacock blue big seeds park screams 2
turkey brown big corn farm gobbles 2
moose brown huge leaves forest grunts 4
puppy brown small meat house barks 4
kitten grey tiny milk house meows 4
lamb white small grass farm bleats 4
pony brown small hay stable neighs 4
chicken white small corn farm clucks 2
""".strip().splitlines():
    a, c, s, f, h, n, l = line.split()
    ANIMALS[a] = (c, s, f, h, n, int(l))
ANIMAL = list(ANIMALS)

GIRLS = W("Anna Emma Lily Rose Clara Mary Nina Ella Lucy Sara Julia Alice Helen Maya Kate Zoe Ruby Ivy Laura Eva Molly Hanna Greta Olga Diana")
BOYS = W("Tom Ben Max Sam Jack Leo Paul Peter Finn Oscar Henry Adam Daniel David Felix George Hugo Ivan Jonas Karl Luke Mark Noah Otto Simon Victor")
JOBS = W("farmer baker teacher doctor nurse sailor soldier king queen prince princess hunter fisherman painter singer dancer writer driver pilot cook tailor miller gardener shepherd carpenter smith clerk judge lawyer student merchant captain guard thief wizard witch giant knight librarian postman butcher barber mechanic scientist inventor musician poet actor waiter engineer plumber")
MALE = set(W("king prince fisherman wizard giant postman knight"))
FEMALE = set(W("queen princess witch"))
KIN = W("mother father sister brother aunt uncle friend cousin neighbour grandmother grandfather son daughter")
COLOURS = W("red blue green yellow white black brown grey pink purple orange golden silver")
SIZES = W("small big tiny huge little large tall short long wide")
ADJ = W("happy sad old young brave clever kind lazy quiet shy proud hungry thirsty tired angry gentle strong weak friendly lonely curious funny silly wise polite rude careful busy rich poor famous cheerful honest greedy noisy patient nervous calm stubborn playful sleepy")
OADJ = W("old new broken shiny wooden heavy light strange beautiful ugly dusty clean dirty soft hard warm cold round flat empty full cheap precious magic lost secret simple sharp smooth rusty plain pretty wet dry thick thin bright dark rare tiny huge small big")
OBJ = W("ball box key book hat coat ring lamp cup plate bowl spoon fork knife bell drum flute guitar violin piano chair table bed mirror clock watch candle basket bottle jar bag sack rope ladder hammer nail saw axe shovel broom bucket brush pencil pen letter map picture flag kite doll toy coin stone shell feather leaf flower stick button ribbon scarf glove boot shoe sock shirt dress belt umbrella blanket pillow carpet curtain door window gate wheel cart wagon boat sword shield crown necklace bracelet whistle trumpet telescope compass lantern pot pan kettle teapot needle thread cushion suitcase purse wallet ticket newspaper magazine notebook envelope stamp parcel present puzzle robot balloon helmet tent torch camera radio telephone computer engine statue vase barrel chest")
PLACE = W("forest river lake mountain hill valley village town city market school church castle tower bridge garden park farm barn mill house cottage palace cave beach island desert meadow field road street shop library museum station harbour hospital theatre kitchen cellar attic bakery inn square stable orchard swamp jungle waterfall well yard playground")
FOOD = W("bread cheese butter milk honey soup rice meat fish cake pie jam sugar salt pepper tea coffee juice water chocolate pasta porridge salad sausage stew toast cream popcorn")
FRUIT = W("apple pear plum cherry grape lemon orange banana peach melon carrot potato tomato onion cabbage bean nut mushroom pumpkin berry cookie egg pancake sandwich cucumber radish")
ADV = W("slowly quickly quietly loudly carefully happily sadly proudly gently suddenly softly bravely kindly angrily politely calmly eagerly nervously patiently cheerfully")
TIME = W("morning evening afternoon night day summer winter spring autumn")
WEATHER = W("sunny rainy cloudy windy snowy foggy stormy cold warm hot mild frosty")
DAYS = W("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = W("January February March April May June July August September October November December")
CAPITALS = dict(x.split("=") for x in W("France=Paris Germany=Berlin Italy=Rome Spain=Madrid Portugal=Lisbon England=London Ireland=Dublin Scotland=Edinburgh Norway=Oslo Sweden=Stockholm Finland=Helsinki Denmark=Copenhagen Poland=Warsaw Austria=Vienna Hungary=Budapest Greece=Athens Turkey=Ankara Russia=Moscow Ukraine=Kyiv Egypt=Cairo Kenya=Nairobi Morocco=Rabat Nigeria=Abuja Ghana=Accra China=Beijing Japan=Tokyo India=Delhi Thailand=Bangkok Vietnam=Hanoi Iran=Tehran Iraq=Baghdad Israel=Jerusalem Canada=Ottawa Cuba=Havana Peru=Lima Chile=Santiago Brazil=Brasilia Australia=Canberra Belgium=Brussels Netherlands=Amsterdam Switzerland=Bern Croatia=Zagreb Serbia=Belgrade Romania=Bucharest Bulgaria=Sofia Iceland=Reykjavik"))
THING_COLOUR = dict(x.split("=") for x in W("grass=green snow=white coal=black blood=red milk=white butter=yellow chocolate=brown gold=yellow ink=black sand=yellow salt=white honey=golden smoke=grey rust=brown ice=white rice=white wood=brown"))
THE_COLOUR = dict(x.split("=") for x in W("sky=blue sun=yellow moon=white night=black ocean=blue"))
FRUIT_COLOUR = dict(x.split("=") for x in W("apple=red lemon=yellow banana=yellow carrot=orange tomato=red cherry=red plum=purple cucumber=green pumpkin=orange mushroom=white potato=brown cabbage=green peach=orange"))
MATERIAL = dict(x.split("=") for x in W("window=glass bottle=glass ring=gold crown=gold sword=iron nail=iron hammer=iron table=wood chair=wood ladder=wood door=wood book=paper letter=paper map=paper newspaper=paper shoe=leather belt=leather boot=leather shirt=cotton dress=silk scarf=wool blanket=wool glove=wool coin=silver vase=clay pot=clay candle=wax statue=stone bridge=stone castle=stone"))
WORKPLACE = dict(x.split("=") for x in W("farmer=farm baker=bakery teacher=school doctor=hospital nurse=hospital sailor=harbour king=castle queen=palace miller=mill gardener=garden librarian=library actor=theatre shepherd=meadow hunter=forest cook=kitchen waiter=inn merchant=market fisherman=lake student=school guard=tower"))
OPPOSITE = [p.split("=") for p in W("big=small hot=cold old=young new=old happy=sad rich=poor long=short tall=short strong=weak clean=dirty full=empty hard=soft heavy=light fast=slow wet=dry early=late open=closed high=low thick=thin good=bad day=night up=down left=right black=white loud=quiet near=far first=last")]
OPPOSITE = [p for p in OPPOSITE if p[0] not in ("new",)]

IRREG = dict(x.split("=") for x in W("mouse=mice sheep=sheep goose=geese fish=fish deer=deer wolf=wolves leaf=leaves knife=knives thief=thieves fisherman=fishermen postman=postmen butterfly=butterflies pony=ponies puppy=puppies cherry=cherries berry=berries potato=potatoes tomato=tomatoes moose=moose radish=radishes peach=peaches box=boxes brush=brushes torch=torches watch=watches fox=foxes witch=witches sandwich=sandwiches compass=compasses dress=dresses"))
NUMWORD = W("two three four five six seven eight nine ten eleven twelve twenty")


def plural(n):
    return IRREG.get(n) or (n + "s")


def an(w):
    return ("an " if w.startswith("honest") or w[0] in "aeiou" and not w.startswith(("uni", "one")) else "a ") + w


def prep(place):
    return {"farm": "on", "plain": "on", "ice": "on", "mountain": "on", "beach": "on", "roof": "on", "web": "on", "market": "at", "harbour": "at", "school": "at", "theatre": "at"}.get(place, "in")


def cap(s):
    return s[0].upper() + s[1:]


# ---------------------------------------------------------------- stories
class Actor:
    def __init__(self, r):
        self.kind = r.choice(["animal", "animal", "job", "child", "child"])
        g = r.random() < .5
        if self.kind == "animal":
            n = r.choice(ANIMAL)
        elif self.kind == "job":
            n = r.choice(JOBS)
            g = False if n in MALE else True if n in FEMALE else g
        else:
            n = "girl" if g else "boy"
        self.noun, self.girl = n, g
        self.name = r.choice(GIRLS if g else BOYS)
        self.he, self.him, self.his = ("she", "her", "her") if g else ("he", "him", "his")
        self.adj = r.choice(ADJ)

    def ref(self, r):
        x = r.random()
        if x < .45:
            return self.he
        return self.name if x < .8 else "the " + self.noun


WEATHERLINE = ["the sun was shining", "it was raining", "the wind was blowing", "the sky was grey", "snow was falling", "the stars were bright", "the moon was full", "the birds were singing", "it was very {weather}", "the air was fresh", "the leaves were falling", "the clouds were dark"]

MOVE = ["walked to the {place}", "ran to the {place}", "went to the {place}", "hurried across the {place2}", "travelled to the {place}", "climbed up to the {place}", "wandered through the {place2}", "came back from the {place2}", "left the {place2}", "rode to the {place}", "jumped over a {oadj} {obj2}", "hid behind the {place2}", "waited near the {place}", "arrived at the {place}", "sailed across the bay", "marched along the path", "crept into the {place}", "swam across the stream", "returned to the {place}", "followed the path to the {place}", "walked past the {place2}", "drove through the {place2}", "got lost in the {place2}", "flew over the {place} in a dream", "moved to a new house", "stayed at the {place} all {time}", "crossed the bridge near the {place2}"]
ACT = ["found {a_oadj} {obj}", "saw {a_oadj} {obj2} on the ground", "picked up the {obj}", "cleaned the {obj}", "looked at the {obj}", "lost the {obj} near the {place2}", "put the {obj} on the {obj3}", "carried the {obj} home", "wanted to buy {a_oadj} {obj2}", "painted the {obj} {colour}", "repaired the {obj}", "dropped the {obj}", "opened {a_oadj} {obj2}", "hid the {obj} under {a_obj3}", "made {a_oadj} {obj2}", "sold the {obj} for {num} coins", "counted {numword} {fruits}", "ate {a_fruit}", "ate some {food}", "drank some water", "cooked some {food}", "bought {numword} {fruits}", "shared the {food} with {kin}", "read {a_oadj} book", "wrote a long letter", "sang {a_sadj} song", "planted a tree", "built a small house", "fell asleep under a tree", "listened to the rain", "thought about the {obj}", "dreamed of {a_oadj} {obj2}", "washed {his} hands", "told a funny story", "played with the {obj}", "danced in the {place2}", "learned to swim", "watched the {animal2s}", "followed {a_animal2}", "heard a strange noise", "laughed and clapped", "smiled {adv}", "cried {adv}", "asked for help", "forgot the {obj}", "cut the {fruit2} with a knife", "closed the door {adv}", "looked out of the window", "lit a candle", "rested for an hour", "worked all {time}", "fixed {a_oadj} {obj2}", "showed the {obj} to {kin}", "threw {a_obj3} into the river", "swept the floor", "milked the cow", "fed the {animal2s}", "counted the stars", "mended the fence", "chased a butterfly", "climbed the stairs", "packed a suitcase", "combed {his} hair", "brushed {his} teeth", "polished the silver spoons", "knocked at the door", "whistled a merry tune", "drew a circle in the sand", "caught a bad cold", "won the first prize", "lost the game", "solved the riddle", "sharpened the axe", "warmed {his} feet by the fire", "shook the snow from {his} coat", "carved a spoon from oak", "borrowed money from a stranger", "broke the ice with a stick", "gathered wood for the fire", "stirred the soup", "tasted the sauce", "picked flowers for {kin}", "tied a knot in the rope", "filled the bucket with water", "hung the wet clothes on a line", "pushed the heavy cart uphill", "pulled the boat out of the water", "dug a deep hole", "baked a cake for {kin}", "studied the stars with a telescope", "practised the {music} every {time}", "promised to come back", "guessed the right answer", "noticed a tiny crack in the wall", "remembered an old dream", "explained the rules of the game", "invited {kin} to dinner", "wrapped the present in paper", "folded the blanket {adv}", "trained {a_animal2}", "weighed the {fruits}", "boiled {numword} eggs", "peeled the {fruits}", "watered the roses", "cleared the table after lunch", "turned on the lantern", "set the clock", "jumped with joy", "took a deep breath", "chose the {colour} {obj2}", "stepped on a thorn", "felt a cool breeze", "spoke to a stranger", "earned {num} coins", "paid for the {food}", "traded the {obj} for {a_oadj} {obj2}", "spent the {evening} alone"]
FEEL = ["was very {adj}", "felt {adj}", "was not afraid", "was tired and {adj}", "became {adj}", "felt better", "was {adj} but {adj2}", "was too {adj} to speak", "seemed {adj}", "was glad to be home", "was {adj} all {time}"]
SAY = ["I am {adj}", "where is the {obj}", "please help me", "thank you very much", "this is my {obj}", "I want to go home", "let us go to the {place}", "I like your {obj}", "can you see the {place}", "do not be afraid", "we must be careful", "what a beautiful {time}", "I have {a_oadj} {obj2}", "you are very {adj}", "I am hungry", "good {morning}", "come with me", "I will never forget this", "who are you", "it is getting late", "the {obj} is mine", "I can help you"]
SAYV = W("said asked whispered shouted answered replied called cried")
TWO = ["{X} met {a_adj} {other} near the {place2}", "{a_adj} {other} came to the {place2}", "the {other} gave {him} {a_oadj} {obj2}", "{X} asked the {other} for help", "the {other} helped {him} {adv}", "{X} and the {other} became friends", "the {other} laughed {adv}", "the {other} wanted the {obj} too", "{X} gave the {obj} to the {other}", "they shared some {food}", "they played in the {place2} until the {evening}", "the {other} ran away {adv}", "together they went to the {place2}", "the {other} was {adj}", "they talked about the {obj}", "{X} waved to the {other}"]
END = ["from that day on, {X} was never {adj} again", "in the end, {X} went home", "then {X} went to sleep", "{X} lived happily ever after", "everyone was happy", "{X} never lost the {obj} again", "that was the end of a long day", "they all lived in the {place} for many years", "and {X} kept the {obj} for ever", "at last {X} was home again", "after that, {X} visited the {place} every {time}", "the people of the {place} thanked {him}"]
CONN = ["then", "after that", "later", "soon", "the next day", "in the {evening}", "suddenly", "before long", "a little later", "one hour later", "at first", "meanwhile", "at noon", "on {day}"]


class Ctx(dict):
    """Slots of a sentence, filled when they are used."""

    def __init__(self, r, a, other=None, place=None, obj=None):
        super().__init__()
        self.r, self.a = r, a
        self.other = other or r.choice([x for x in r.sample(ANIMAL, 2) if x != a.noun] + r.sample(JOBS, 1))
        self.place = place or r.choice(PLACE)
        self.obj = obj or r.choice(OBJ)

    def __missing__(self, k):
        r, a = self.r, self.a
        c = r.choice
        return {
            "X": lambda: a.ref(r), "name": lambda: a.name, "noun": lambda: a.noun, "he": lambda: a.he, "him": lambda: a.him, "his": lambda: a.his,
            "other": lambda: self.other, "place": lambda: self.place, "place2": lambda: c(PLACE), "obj": lambda: self.obj,
            "obj2": lambda: c(OBJ), "obj3": lambda: c(OBJ), "a_obj3": lambda: an(c(OBJ)), "oadj": lambda: c(OADJ), "a_oadj": lambda: an(c(OADJ)),
            "adj": lambda: c(ADJ), "adj2": lambda: c(ADJ), "a_adj": lambda: an(c(ADJ)), "a_sadj": lambda: an(c(W("sad happy short long old new quiet beautiful"))),
            "colour": lambda: c(COLOURS), "music": lambda: c(W("violin piano flute guitar drum trumpet")), "num": lambda: str(r.randint(2, 99)), "numword": lambda: c(NUMWORD), "fruit": lambda: c(FRUIT), "fruits": lambda: plural(c(FRUIT)),
            "a_fruit": lambda: an(c(FRUIT)), "fruit2": lambda: c(FRUIT), "food": lambda: c(FOOD), "kin": lambda: a.his + " " + c(KIN), "adv": lambda: c(ADV), "time": lambda: c(TIME),
            "morning": lambda: c(W("morning evening afternoon night")), "evening": lambda: c(W("morning evening afternoon")),
            "animal2s": lambda: plural(c(ANIMAL)), "a_animal2": lambda: an(c(ANIMAL)), "weather": lambda: c(WEATHER), "day": lambda: c(DAYS),
        }[k]()


def fill(t, ctx):
    return t.format_map(ctx)


def fill_an(t, ctx):
    # "{a_oadj}" fills article and adjective; a bare "a {oadj}" is corrected here
    s = t.replace("a {oadj}", "{a_oadj}").format_map(ctx)
    return s


def story(r, n=None):
    a = Actor(r)
    ctx = Ctx(r, a)
    size = r.choice(SIZES[:6])
    n = n or r.randint(2, 8)
    k = r.random()
    if k < .35:
        first = r.choice([f"Once upon a time there was {an(a.adj)} {a.noun} named {a.name}.", f"Once upon a time, {an(a.adj)} {a.noun} lived near the {ctx.place}.",
                          f"Once upon a time there lived {an(size)} {a.noun} in {an(r.choice(OADJ[:8]))} {ctx.place}.", f"Once there was {an(size)} {a.noun} called {a.name}.",
                          f"A long time ago, {an(a.adj)} {a.noun} lived in the {ctx.place}."])
    elif k < .6:
        first = r.choice([f"{a.name} was {an(a.adj)} {a.noun}.", f"{a.name} the {a.noun} was {a.adj}.", f"{a.name} was {an(a.noun)} who lived near the {ctx.place}.",
                          f"There was {an(a.noun)} named {a.name} in the {ctx.place}.", f"{cap(an(a.adj))} {a.noun} lived in a house near the {ctx.place}."])
    else:
        t = r.choice(TIME)
        first = r.choice([f"One {t}, {a.name} went to the {ctx.place}.", f"One {t} {an(a.adj)} {a.noun} found {an(r.choice(OADJ))} {ctx.obj}.",
                          f"Every {t}, {a.name} the {a.noun} walked to the {ctx.place}.", f"On {r.choice(DAYS)}, {a.name} visited the {ctx.place} with {a.his} {r.choice(KIN)}.",
                          f"It was a {r.choice(WEATHER)} {t}, and {a.name} was at the {ctx.place}.", f"In {r.choice(MONTHS)}, {an(a.adj)} {a.noun} came to the {ctx.place}."])
    out = [first]
    if r.random() < .6:
        out.append(r.choice([f"{cap(a.he)} had {an(r.choice(OADJ))} {ctx.obj}.", f"{cap(a.his)} best friend was {an(r.choice(ANIMAL))}.", f"{cap(a.he)} loved {a.his} {ctx.obj} more than anything.",
                             f"{a.name} had {r.choice(NUMWORD)} {plural(r.choice(ANIMAL))}.", f"{cap(a.he)} lived with {a.his} {r.choice(KIN)} in a {r.choice(W('small big little white red'))} house.",
                             f"{cap(a.he)} liked {r.choice(FOOD)} and {plural(r.choice(FRUIT))}.", f"{cap(a.he)} wanted to find the {ctx.obj}."]))
    two = r.random() < .5
    for _ in range(n):
        x = r.random()
        if x < .30:
            s = f"{a.ref(r)} {fill_an(r.choice(MOVE), ctx)}"
        elif x < .62:
            s = f"{a.ref(r)} {fill_an(r.choice(ACT), ctx)}"
        elif x < .72:
            s = f"{a.ref(r)} {fill(r.choice(FEEL), ctx)}"
        elif x < .80:
            s = fill(r.choice(WEATHERLINE), ctx)
        elif x < .88 or not two:
            q = fill(r.choice(SAY), ctx)
            mark = "?" if q.split()[0] in ("where", "can", "who") else r.choice(".!")
            who = ("the " + ctx.other) if two and r.random() < .5 else a.ref(r)
            if r.random() < .5:
                out.append(f"\"{cap(q)}{',' if mark == '.' else mark}\" {r.choice(SAYV)} {who}.")
            else:
                out.append(f"{cap(who)} {r.choice(SAYV)}, \"{cap(q)}{mark}\"")
            continue
        else:
            s = fill(r.choice(TWO), ctx)
        y = r.random()
        if y < .18:
            s = fill(r.choice(CONN), ctx) + ", " + s
        elif y < .32:
            s = s + f" and {fill_an(r.choice(ACT), ctx)}" if x < .62 else s
        elif y < .38:
            s = s + f", because {a.he} was {r.choice(ADJ)}" if x < .62 else s
        elif y < .44:
            s = f"when {fill(r.choice(WEATHERLINE), ctx)}, " + s if x < .62 else s
        elif y < .48:
            s = s + f", but {a.he} was {r.choice(ADJ)}" if x < .62 else s
        out.append(cap(s) + ".")
    if r.random() < .6:
        out.append(cap(fill(r.choice(END), ctx)) + ".")
    return " ".join(out)


def filler(r):
    """One free sentence for the passages."""
    a = Actor(r)
    ctx = Ctx(r, a)
    x = r.random()
    who = r.choice([a.name, "the " + a.noun, f"the {a.adj} {a.noun}", an(a.adj) + " " + a.noun])
    if x < .3:
        s = f"{who} {fill_an(r.choice(MOVE), ctx)}."
    elif x < .6:
        s = f"{who} {fill_an(r.choice(ACT), ctx)}."
    elif x < .7:
        s = f"{who} {fill(r.choice(FEEL), ctx)}."
    elif x < .78:
        s = fill(r.choice(WEATHERLINE), ctx) + "."
    else:
        s = fact(r)
    return cap(s)


# ---------------------------------------------------------------- facts
def fact_qa(r):
    """(question, sentence that answers it); the key word carries the answer marker."""
    k = r.random()
    A = lambda w: f"\x02 {w}\x00"
    if k < .27:
        c = r.choice(list(CAPITALS))
        v = CAPITALS[c]
        if r.random() < .8:
            return f"What is the capital of {c}?", f"The capital of {c} is{A(v)}."
        return r.choice([f"Where is {v}?", f"In which country is {v}?"]), f"{v} is the capital of{A(c)}."
    if k < .60:
        a = r.choice(ANIMAL)
        col, size, food, home, sound, legs = ANIMALS[a]
        base = r.randrange(6)
        if base == 0:
            return f"What colour is {an(a)}?", f"{cap(an(a))} is{A(col)}."
        if base == 1:
            return f"What does {an(a)} eat?", f"{cap(an(a))} eats{A(food)}."
        if base == 2:
            return f"Where does {an(a)} live?", f"{cap(an(a))} lives {prep(home)} the{A(home)}."
        if base == 3:
            if sound in ("talks", "sings", "flutters"):
                return f"What does {an(a)} do?", f"{cap(an(a))}{A(sound)}."
            return r.choice([f"What sound does {an(a)} make?", f"What does {an(a)} do?"]), f"{cap(an(a))}{A(sound)}."
        if base == 4:
            return f"How many legs does {an(a)} have?", (f"{cap(an(a))} has{A(legs)} legs." if legs else f"{cap(an(a))} has{A('no')} legs.")
        return f"How big is {an(a)}?", f"{cap(an(a))} is{A(size)}."
    if k < .68:
        t = r.choice(list(THING_COLOUR) + list(THE_COLOUR))
        if t in THE_COLOUR:
            return f"What colour is the {t}?", f"The {t} is{A(THE_COLOUR[t])}."
        return f"What colour is {t}?", f"{cap(t)} is{A(THING_COLOUR[t])}."
    if k < .74:
        t = r.choice(list(FRUIT_COLOUR))
        return f"What colour is {an(t)}?", f"{cap(an(t))} is{A(FRUIT_COLOUR[t])}."
    if k < .82:
        t = r.choice(list(MATERIAL))
        return f"What is {an(t)} made of?", f"{cap(an(t))} is made of{A(MATERIAL[t])}."
    if k < .88:
        t = r.choice(list(WORKPLACE))
        return f"Where does {an(t)} work?", f"{cap(an(t))} works {prep(WORKPLACE[t])} the{A(WORKPLACE[t])}."
    if k < .94:
        p, q = r.choice(OPPOSITE)
        if r.random() < .5 and q not in ("old", "short"):
            p, q = q, p
        if p == "old":
            q = "young"
        return f"What is the opposite of {p}?", f"The opposite of {p} is{A(q)}."
    if k < .97:
        i = r.randrange(7)
        if r.random() < .5:
            return f"Which day comes after {DAYS[i]}?", f"{DAYS[(i + 1) % 7]} comes after {DAYS[i]}."
        return f"Which day comes before {DAYS[i]}?", f"{DAYS[(i - 1) % 7]} comes before {DAYS[i]}."
    i = r.randrange(12)
    return f"Which month comes after {MONTHS[i]}?", f"{MONTHS[(i + 1) % 12]} comes after {MONTHS[i]}."


MORE_FACTS = ["A week has 7 days.", "A year has 12 months.", "A day has 24 hours.", "An hour has 60 minutes.", "Fish swim in the water.", "Birds fly in the sky.", "Bees make honey.", "Cows give milk.",
              "Hens lay eggs.", "Spiders spin webs.", "The sun rises in the east.", "The sun sets in the west.", "Fire is hot and ice is cold.", "Bread is made of flour.", "Paper is made from wood.",
              "Rain falls from the clouds.", "Snow falls in winter.", "Leaves fall in autumn.", "Flowers bloom in spring.", "The beach is warm in summer.", "Wool comes from sheep.", "Stars shine at night.",
              "A triangle has 3 sides.", "A square has 4 sides.", "A hand has 5 fingers.", "Trains run on rails.", "Ships sail on the sea.", "Planes fly above the clouds.", "Children go to school.",
              "Doctors help sick people.", "Water is wet.", "Stones sink but wood floats.", "The moon is smaller than the earth.", "An elephant is bigger than a mouse.", "A snail is slower than a horse.",
              "Ice melts when it is warm.", "People sleep at night.", "Owls hunt at night.", "Bears sleep in winter.", "Trees have roots, branches and leaves."]


def fact(r):
    k = r.random()
    if k < .2:
        return r.choice(MORE_FACTS)
    if k < .35:
        a, b = r.sample(ANIMAL, 2)
        order = W("tiny small long tall big huge")
        x, y = order.index(ANIMALS[a][1]), order.index(ANIMALS[b][1])
        if x != y and not {"long", "tall"} & {ANIMALS[a][1], ANIMALS[b][1]}:
            return f"{cap(an(a))} is\x02 {'bigger' if x > y else 'smaller'}\x00 than {an(b)}."
    return fact_qa(r)[1]


# ---------------------------------------------------------------- sums
def sum_pair(r):
    x = r.random()
    if x < .45:
        a, b = r.randint(0, 10), r.randint(0, 10)
    elif x < .8:
        a, b = r.randint(0, 50), r.randint(0, 10)
    else:
        a = r.randint(0, 99)
        b = r.randint(0, 99 - a)
    return (a, b) if r.random() < .6 else (b, a)


def sum_qa(r):
    a, b = sum_pair(r)
    if r.random() < .75:
        return f"What is {a} plus {b}?", f"{a} plus {b} is\x02 {a + b}\x00."
    a, b = max(a, b), min(a, b)
    return f"What is {a} minus {b}?", f"{a} minus {b} is\x02 {a - b}\x00."


def sums(r, n=None):
    out = []
    for _ in range(n or r.randint(2, 8)):
        q, s = sum_qa(r)
        out.append(q + " " + s if r.random() < .2 else s)
    return " ".join(out)


# ---------------------------------------------------------------- recall
SUBJ = ANIMAL + JOBS + [o for o in OBJ] + [p for p in PLACE]
SUBJ = list(dict.fromkeys(SUBJ))
ATTR = W("code number price score")


def held_out(subj, num):
    """A tenth of all (subject, number) pairs never occurs in the training text."""
    return zlib.crc32(f"{subj}/{num}".encode()) % 10 == 0


def rnum(r, subj, want=False):
    while True:
        n = r.randint(1, 99)
        if held_out(subj, n) == want:
            return n


def recall_facts(r, n, held=False):
    """n (statement, question, answer, long answer) about different subjects, of one kind or of several."""
    kind = r.choice(["num"] * 6 + ["colour", "name", "place", "child"])
    attr = "code" if held or r.random() < .6 else r.choice(ATTR)
    out = []
    names = r.sample(GIRLS + BOYS, min(n, 12))
    cols = [r.choice(COLOURS) for _ in range(n)]
    for i, s in enumerate(r.sample(SUBJ, n)):
        if held:
            v = rnum(r, s, True)
        else:
            v = rnum(r, s)
        if held or kind == "num":
            st = f"The {attr} of the {s} is\x01 {v}\x00."
            out.append((st, f"What is the {attr} of the {s}?", f" {v}", f"The {attr} of the {s} is\x02 {v}\x00."))
        elif kind == "colour":
            out.append((f"The {s} of {names[i % len(names)]} is\x01 {cols[i]}\x00.", f"What colour is the {s} of {names[i % len(names)]}?", f" {cols[i]}", f"The {s} of {names[i % len(names)]} is\x02 {cols[i]}\x00."))
        elif kind == "name":
            s = r.choice(ANIMAL) if i else s
            out.append((f"The name of the {s} is\x01 {names[i % len(names)]}\x00.", f"What is the name of the {s}?", f" {names[i % len(names)]}", f"The name of the {s} is\x02 {names[i % len(names)]}\x00."))
        elif kind == "place":
            p = r.choice(PLACE)
            nm = names[i % len(names)]
            if i >= len(names):
                break
            out.append((f"{nm} is in the\x01 {p}\x00.", f"Where is {nm}?", f" {p}", f"{nm} is in the\x02 {p}\x00."))
        else:
            nm = names[i % len(names)]
            if i >= len(names):
                break
            out.append((f"{nm} is\x01 {v}\x00 years old.", f"How old is {nm}?", f" {v}", f"{nm} is\x02 {v}\x00 years old."))
    # one fact per question
    seen, res = set(), []
    for f in out:
        if f[1] not in seen:
            seen.add(f[1])
            res.append(f)
    return res, kind


DENSE = .2              # share of recall passages without other sentences; the second training stage has more


def words_of(s):
    return len(s.replace(".", " .").replace(",", " ,").split())


def passage(r, length, held=False, nf=None):
    """Text of about `length` tokens with facts among other sentences: (text, facts)."""
    n = nf or max(1, min(12, int(r.uniform(.3, 1.0) * length / 16)))
    facts, kind = recall_facts(r, n, held)
    total = sum(words_of(f[0]) for f in facts)
    sents = [f[0] for f in facts]
    dense = r.random() < DENSE and not held
    while not dense:
        f = filler(r)
        w = words_of(f)
        if total + w > length:
            break
        sents.append(f)
        total += w
    r.shuffle(sents)
    return " ".join(sents), facts


def recall(r, length):
    n_q = r.randint(1, max(1, min(5, length // 25))) if r.random() > DENSE else r.randint(1, max(1, length // 20))
    text, facts = passage(r, max(12, length - 12 * n_q))
    out = [text]
    for _ in range(n_q):
        f = r.choice(facts)
        if f[2].strip().isdigit() and r.random() < .7:
            out.append(f"{f[1]}\x02{f[2]}\x00.")
        else:
            out.append(f"{f[1]} {f[3]}")
    return " ".join(out)


# ---------------------------------------------------------------- chats
SYS = ["You are a helpful assistant.", "You are a small model.", "Answer the question.", "You tell short stories.", "Be kind and brief."]
SMALLTALK = [("Hello!", "Hello! How can I help you?"), ("Hi!", "Hello! What can I do for you?"), ("Hello.", "Hello! How can I help you?"), ("Good morning!", "Good morning! How are you today?"),
             ("How are you?", "I am fine, thank you."), ("Who are you?", "I am a small demo model with 40 layers."), ("What are you?", "I am a small demo model with 40 layers."), ("What is your name?", "My name is Demo."),
             ("Thank you!", "You are welcome."), ("Thanks!", "You are welcome."), ("Goodbye!", "Goodbye! See you soon."), ("What can you do?", "I can tell stories, answer simple questions, add small numbers and remember what you tell me."),
             ("Can you help me?", "Yes, I can help you. What is the question?"), ("How many layers do you have?", "I have 40 layers."), ("Are you a person?", "No, I am a small model.")]


def chat_pair(r, length):
    k = r.random()
    if k < .12:
        return r.choice(SMALLTALK)
    if k < .36:
        return fact_qa(r)
    if k < .5:
        return sum_qa(r)
    if k < .72 and length > 40:
        text, facts = passage(r, max(12, length - 30))
        f = r.choice(facts)
        return f"{text} {f[1]}", (f[3] if r.random() < .7 or not f[2].strip().isdigit() else f"\x02{f[2].strip()}\x00.")
    if k < .92:
        s = story(r, r.randint(1, 3))
        w = s.split()
        noun = next((x for x in (y.strip(".,").lower() for y in w) if x in ANIMALS or x in JOBS or x in ("girl", "boy")), None)
        if noun:
            return r.choice([f"Tell me a story about {an(noun)}.", f"Write a story about {an(noun)}.", f"Please tell me a short story about {an(noun)}."]), s
        return r.choice(["Tell me a story.", "Write a short story.", "Please tell me a story."]), s
    a = r.choice(ANIMAL)
    col, size, food, home, sound, legs = ANIMALS[a]
    return r.choice([f"Tell me something about {an(a)}.", f"What do you know about {an(a)}?"]), f"{cap(an(a))} is\x02 {col}\x00 and\x02 {size}\x00. It eats\x02 {food}\x00 and lives {prep(home)} the\x02 {home}\x00."


def chat(r, length):
    out = ""
    if r.random() < .3:
        out += f"<|im_start|>system\n{r.choice(SYS)}<|im_end|>\n"
    n = r.choice([1, 1, 2, 3])
    for _ in range(n):
        q, a = chat_pair(r, length // n)
        if r.random() < .03:
            q = q[0].lower() + q[1:]
        out += f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n"
    return out


def fact_list(r):
    out = []
    for _ in range(r.randint(2, 8)):
        if r.random() < .35:
            q, s = fact_qa(r)
            out.append(q + " " + s)
        else:
            out.append(fact(r))
    return " ".join(out)


MIX = (.34, .12, .12, .24, .18)    # stories, facts, sums, recall, chats


def document(r, length, mix=MIX):
    """One document of at most roughly `length` tokens."""
    k = r.choices(range(5), mix)[0]
    if k == 0:
        s = story(r)
        if r.random() < .1:
            s = " ".join(cap(filler(r)) for _ in range(r.randint(2, 6)))
    elif k == 1:
        s = fact_list(r)
    elif k == 2:
        s = sums(r)
    elif k == 3:
        s = recall(r, r.randint(min(30, length // 2), length - 6))
    else:
        return chat(r, r.randint(length // 2, length - 10))
    if r.random() < .03:          # texts that begin in lower case, or in the middle of a sentence
        s = s[0].lower() + s[1:] if s[0] not in "\x01\x02\"" else s
    elif r.random() < .05:
        i = s.find(" ", r.randrange(1, 30))
        if i > 0 and "\x02" not in s[:i + 1] and "\x01" not in s[:i + 1]:
            s = s[i + 1:]
    return s


def plain(s):
    return s.replace("\x00", "").replace("\x01", "").replace("\x02", "")


def held_out_prompts(n=100, seed=4242, length=200, count=None):
    """Recall prompts of about `length` tokens (count(text) gives tokens) over held-out pairs."""
    r = random.Random(seed)
    count = count or words_of
    out = []
    while len(out) < n:
        text, facts = passage(r, length - 9, held=True, nf=r.randint(3, 9))
        f = facts[r.randrange(len(facts))]
        p = plain(text + " " + f[1])
        c = count(p)
        if length - 8 <= c <= length + 8:
            out.append({"prompt": p, "answer": f[2].strip(), "subject": f[1].split()[-1].rstrip("?"), "tokens": c})
    return out


if __name__ == "__main__":
    r = random.Random(1)
    for _ in range(25):
        print(plain(document(r, 120)), "\n")

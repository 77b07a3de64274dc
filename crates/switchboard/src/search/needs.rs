//! What a question needs without saying so: a clock for "tomorrow", a calculator for a percentage, a way to write the
//! file it wants.
//!
//! Owns the table of such needs and the signs by which they are told. A need is a search of its own, for tools that
//! have all of its words; its best hit gets one of the last places of the result. It must not know a server.

use super::text::Splitter;

/// A need, by its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need(u8);

/// What to look for. The first ones have names; those of files come in the order of [`FILES`], reading before writing.
const GENERAL: [&str; 4] = [
    "get current time",
    "calculate",
    "geocode address coordinates",
    "fetch url",
];

impl Need {
    pub(super) const CLOCK: Self = Self(0);
    pub(super) const CALCULATOR: Self = Self(1);
    pub(super) const COORDINATES: Self = Self(2);
    pub(super) const WEB_PAGE: Self = Self(3);

    /// How many there are.
    pub(super) const COUNT: usize = GENERAL.len() + 2 * FILES.len();

    /// The need of a file with that extension.
    pub(super) fn of_file(extension: &str, access: Access) -> Self {
        let kind = FILES
            .iter()
            .position(|kind| kind.extensions.split(' ').any(|known| known == extension))
            .unwrap_or(0);
        let place = GENERAL.len() + 2 * kind + usize::from(access == Access::Write);
        Self(u8::try_from(place).unwrap_or_default())
    }

    /// The place in the table.
    pub(super) fn place(self) -> usize {
        self.0.into()
    }

    /// The stemmed words that a tool must have.
    pub(super) fn words(self) -> Vec<Box<str>> {
        let mut words = Vec::new();
        Splitter::default().split(self.phrase(), |word, _| words.push(word.into()));
        words
    }

    fn phrase(self) -> &'static str {
        let place = self.place();
        if let Some(phrase) = GENERAL.get(place) {
            return phrase;
        }
        let place = place - GENERAL.len();
        FILES.get(place / 2).map_or("", |kind| {
            if place.is_multiple_of(2) {
                kind.read
            } else {
                kind.write
            }
        })
    }
}

/// What a question wants with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It is there already.
    Read,
    /// It is to be made.
    Write,
}

/// A kind of file, and what to look for to read and to write it.
struct FileKind {
    extensions: &'static str,
    read: &'static str,
    write: &'static str,
}

/// The first is for any file.
#[rustfmt::skip]
const FILES: &[FileKind] = &[
    FileKind { extensions: "", read: "read file", write: "write file" },
    FileKind { extensions: "xlsx xls xlsm ods", read: "excel read sheet", write: "excel write sheet" },
    FileKind { extensions: "docx doc odt", read: "word document get text", write: "word create document" },
    FileKind { extensions: "pptx ppt odp", read: "open presentation", write: "create presentation" },
    FileKind { extensions: "csv tsv", read: "read document file", write: "write file" },
    FileKind { extensions: "pdf", read: "read pdf", write: "convert pdf" },
    FileKind { extensions: "png jpg jpeg gif webp svg bmp", read: "extract image file", write: "save image" },
    FileKind { extensions: "mp3 wav flac ogg m4a", read: "load audio file", write: "save audio" },
    FileKind { extensions: "mp4 mkv mov avi webm", read: "load video", write: "save video" },
];

/// Words after which a file is one to be made, until the sentence ends or a word of [`READS`] comes.
const WRITES: &[&str] = &[
    "creat", "document", "draft", "draw", "export", "generat", "make", "output", "plot", "put",
    "report", "save", "store", "summar", "write", "wrote",
];

/// Words after which a file is there already.
const READS: &[&str] = &[
    "analyz", "check", "convert", "extract", "load", "look", "open", "pars", "read", "under",
    "view",
];

/// Words that ask for a calculation.
const CALCULATES: &[&str] = &[
    "averag",
    "calcul",
    "comput",
    "estim",
    "multipli",
    "percent",
    "percentag",
    "subtract",
    "sum",
    "total",
];

/// Words that name a place by where it lies.
const LOCATES: &[&str] = &[
    "direct", "distanc", "drive", "kilomet", "mile", "near", "nearbi", "radius", "rout", "surround",
];

/// Words that mean another day on another day.
const DAYS: &[&str] = &["today", "tomorrow", "tonight", "upcom", "yesterday"];

/// Words that need one of [`SPANS`] after them for that.
const TURNS: &[&str] = &["come", "last", "next", "past", "this"];

const SPANS: &[&str] = &[
    "24h",
    "day",
    "friday",
    "futur",
    "hour",
    "monday",
    "month",
    "quarter",
    "saturday",
    "sunday",
    "thursday",
    "tuesday",
    "wednesday",
    "week",
    "weekend",
    "year",
];

/// Looks for signs of needs, word by word.
#[derive(Debug, Default)]
pub(super) struct Signs {
    needs: Vec<Need>,
    writes: bool,
    /// How many words ago one of [`TURNS`] stood.
    since_turn: Option<u8>,
}

impl Signs {
    /// Takes the next word of the question, stemmed.
    pub(super) fn word(&mut self, word: &str) {
        if WRITES.contains(&word) {
            self.writes = true;
        } else if READS.contains(&word) {
            self.writes = false;
        }
        if CALCULATES.contains(&word) {
            self.add(Need::CALCULATOR);
        }
        if LOCATES.contains(&word) {
            self.add(Need::COORDINATES);
        }
        self.since_turn = match self.since_turn {
            _ if TURNS.contains(&word) => Some(0),
            Some(words) if words < 2 => Some(words + 1),
            _ => None,
        };
        if DAYS.contains(&word) || (self.since_turn.is_some() && SPANS.contains(&word)) {
            self.add(Need::CLOCK);
        }
    }

    /// Takes the path of a file.
    pub(super) fn file(&mut self, extension: &str) {
        let access = if self.writes {
            Access::Write
        } else {
            Access::Read
        };
        self.add(Need::of_file(extension, access));
    }

    /// Takes the address of a web page.
    pub(super) fn address(&mut self) {
        self.add(Need::WEB_PAGE);
    }

    /// Ends a sentence.
    pub(super) fn end_sentence(&mut self) {
        self.writes = false;
        self.since_turn = None;
    }

    /// The needs, in the order of their signs.
    pub(super) fn into_needs(self) -> Vec<Need> {
        self.needs
    }

    fn add(&mut self, need: Need) {
        if !self.needs.contains(&need) {
            self.needs.push(need);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_lists_is_a_stem() {
        let lists = [WRITES, READS, CALCULATES, LOCATES, DAYS, TURNS, SPANS];
        for word in lists.into_iter().flatten() {
            let mut stems = Vec::new();
            Splitter::default().split(word, |stem, _| stems.push(stem.to_owned()));
            assert!(stems.iter().any(|stem| stem == word), "{word}: {stems:?}");
        }
    }

    #[test]
    fn every_need_has_words() {
        for place in 0..Need::COUNT {
            let need = Need(u8::try_from(place).unwrap());
            assert!(!need.words().is_empty(), "{place}");
        }
        assert_eq!(Need::CLOCK.phrase(), "get current time");
        assert_eq!(
            Need::of_file("xlsx", Access::Write).phrase(),
            "excel write sheet"
        );
        assert_eq!(Need::of_file("md", Access::Read).phrase(), "read file");
    }
}

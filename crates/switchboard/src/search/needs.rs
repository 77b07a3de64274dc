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

/// What a word is a sign of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A file after it is one to be made, until the sentence ends or a word comes that reads.
    Writes,
    /// A file after it is there already.
    Reads,
    /// It asks for a calculation.
    Calculates,
    /// It names a place by where it lies.
    Locates,
    /// It means another day on another day.
    Day,
    /// It does so together with a span after it.
    Turn,
    /// What is turned to.
    Span,
}

/// The words that are signs.
pub(super) const SIGNS: &[(Sign, &str)] = &[
    (
        Sign::Writes,
        "create document draft draw export generate make output plot put report save store summarize write",
    ),
    (
        Sign::Reads,
        "analyze check convert extract load look open parse read under view",
    ),
    (
        Sign::Calculates,
        "average calculate compute estimate multiply percent percentage subtract sum total",
    ),
    (
        Sign::Locates,
        "direction distance drive kilometer mile near nearby radius route surround",
    ),
    (Sign::Day, "today tomorrow tonight upcoming yesterday"),
    (Sign::Turn, "come last next past this"),
    (
        Sign::Span,
        "24h day future hour month quarter week weekend year
        monday tuesday wednesday thursday friday saturday sunday",
    ),
];

/// Looks for signs of needs, word by word.
#[derive(Debug, Default)]
pub(super) struct Signs {
    needs: Vec<Need>,
    writes: bool,
    /// How many words ago a turn stood.
    since_turn: Option<u8>,
}

impl Signs {
    /// Takes the next word of the question.
    pub(super) fn word(&mut self, sign: Option<Sign>) {
        self.since_turn = match self.since_turn {
            _ if sign == Some(Sign::Turn) => Some(0),
            Some(words) if words < 2 => Some(words + 1),
            _ => None,
        };
        match sign {
            Some(Sign::Writes) => self.writes = true,
            Some(Sign::Reads) => self.writes = false,
            Some(Sign::Calculates) => self.add(Need::CALCULATOR),
            Some(Sign::Locates) => self.add(Need::COORDINATES),
            Some(Sign::Day) => self.add(Need::CLOCK),
            Some(Sign::Span) if self.since_turn.is_some() => self.add(Need::CLOCK),
            Some(Sign::Span | Sign::Turn) | None => {}
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

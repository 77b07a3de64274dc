//! The file that a question wants written, and the tool that can write it.
//!
//! "Summarize this and save it as /tmp/report.docx" names what to summarize; the tool that writes a Word document is
//! needed too, and few of its words are in the question. It gets the last place of the result. A path after a word like
//! "save" is the only hint that is used. Dates, percentages, places and addresses were tried as hints too: in seven public
//! query sets they added 140 tools to results, none of them right.

use super::text::Splitter;

/// What to search for to write a file, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenFile(u8);

/// Extensions, and words of a tool that writes such files. The first entry is for any other file.
#[rustfmt::skip]
const KINDS: [(&str, &str); 8] = [
    ("", "write file"),
    ("xlsx xls xlsm ods", "excel write sheet"),
    ("docx doc odt", "word create document"),
    ("pptx ppt odp", "create presentation"),
    ("pdf", "convert pdf"),
    ("png jpg jpeg gif webp svg bmp", "save image"),
    ("mp3 wav flac ogg m4a", "save audio"),
    ("mp4 mkv mov avi webm", "save video"),
];

impl WrittenFile {
    /// The number of kinds of files.
    pub(super) const COUNT: usize = KINDS.len();

    /// The kind of a file with this extension.
    fn of(extension: &str) -> Self {
        let kind = KINDS
            .iter()
            .position(|(extensions, _)| extensions.split(' ').any(|known| known == extension));
        Self(u8::try_from(kind.unwrap_or(0)).unwrap_or(0))
    }

    /// The place in the table.
    pub(super) fn place(self) -> usize {
        self.0.into()
    }

    /// The stemmed words that the tool must have.
    pub(super) fn words(self) -> Vec<Box<str>> {
        let mut words = Vec::new();
        let phrase = KINDS.get(self.place()).map_or("", |(_, phrase)| phrase);
        Splitter::default().split(phrase, |word, _| words.push(word.into()));
        words
    }
}

/// What a verb says about the file after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileVerb {
    /// The file is an output.
    Writes,
    /// The file is an input.
    Reads,
}

/// Verbs that tell outputs from inputs.
pub(super) const FILE_VERBS: [(FileVerb, &str); 2] = [
    (
        FileVerb::Writes,
        "create document draft draw export generate make output plot put report save store summarize write",
    ),
    (
        FileVerb::Reads,
        "analyze check convert extract load look open parse read under view",
    ),
];

/// Looks for a file to be written, word by word.
#[derive(Debug, Default)]
pub(super) struct FileFinder {
    writes: bool,
    found: Option<WrittenFile>,
}

impl FileFinder {
    /// Takes the next word of the question.
    pub(super) fn word(&mut self, verb: Option<FileVerb>) {
        if let Some(verb) = verb {
            self.writes = verb == FileVerb::Writes;
        }
    }

    /// Takes the path of a file.
    pub(super) fn file(&mut self, extension: &str) {
        if self.writes {
            self.found.get_or_insert_with(|| WrittenFile::of(extension));
        }
    }

    /// Ends a sentence: its verb says nothing about the files of the next one.
    pub(super) fn end_sentence(&mut self) {
        self.writes = false;
    }

    /// The first file to be written, if any.
    pub(super) fn finish(self) -> Option<WrittenFile> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_words() {
        for place in 0..WrittenFile::COUNT {
            let kind = WrittenFile(u8::try_from(place).unwrap());
            assert!(!kind.words().is_empty(), "{place}");
        }
        assert_eq!(
            WrittenFile::of("xlsx").words(),
            ["excel", "write", "sheet"].map(Box::from)
        );
        assert_eq!(WrittenFile::of("md"), WrittenFile(0));
    }
}

//! Detects the file that a query wants written, to add the tool that can write it.
//!
//! "Summarize this and save it as /tmp/report.docx" names what to summarize; a tool that writes Word documents is
//! needed as well, but shares few words with the query. It takes the last place of the results. The only hint used is a
//! path after a verb like "save". Dates, percentages, places and addresses were tried as hints: in seven public query
//! sets they added 140 tools to results, none of them right.

use super::text::Splitter;

/// Kind of file to write, as an index into [`KINDS`].
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
    pub(super) const COUNT: usize = KINDS.len();

    /// Returns the kind for an extension.
    fn of(extension: &str) -> Self {
        let kind = KINDS
            .iter()
            .position(|(extensions, _)| extensions.split(' ').any(|known| known == extension));
        Self(u8::try_from(kind.unwrap_or(0)).unwrap_or(0))
    }

    /// Index in the table.
    pub(super) fn place(self) -> usize {
        self.0.into()
    }

    /// Stemmed words that the tool must have.
    pub(super) fn words(self) -> Vec<Box<str>> {
        let mut words = Vec::new();
        let phrase = KINDS.get(self.place()).map_or("", |(_, phrase)| phrase);
        Splitter::default().split(phrase, |word, _| words.push(word.into()));
        words
    }
}

/// Direction of a file verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileVerb {
    /// The file is an output.
    Writes,
    /// The file is an input.
    Reads,
}

/// Verbs that distinguish outputs from inputs.
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

/// Finds a file to be written, word by word.
#[derive(Debug, Default)]
pub(super) struct FileFinder {
    writes: bool,
    found: Option<WrittenFile>,
}

impl FileFinder {
    /// Handles the next word of the query.
    pub(super) fn word(&mut self, verb: Option<FileVerb>) {
        if let Some(verb) = verb {
            self.writes = verb == FileVerb::Writes;
        }
    }

    /// Handles a file path.
    pub(super) fn file(&mut self, extension: &str) {
        if self.writes {
            self.found.get_or_insert_with(|| WrittenFile::of(extension));
        }
    }

    /// Ends a sentence: its verb does not apply to files of the next one.
    pub(super) fn end_sentence(&mut self) {
        self.writes = false;
    }

    /// Returns the first file to be written, if any.
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

//! A source file with all its mutants in it, of which a switch chooses one when the program runs.
//!
//! The body of each function becomes a `match` with one arm for each mutant, which contains the whole mutated body, and
//! one for the body as it was. So every kind of mutation is expressed in the same way, and a build serves all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::list::{Function, Mutant};

/// The variable with the number of the mutant to switch on.
pub(super) const ACTIVE: &str = "SWITCHBOARD_MUTANT";
/// The variable with the folder in which each process writes the functions that it reaches.
pub(super) const REACHED: &str = "SWITCHBOARD_MUTANTS_REACHED";

/// The text of a file with its mutants.
pub(super) struct Switched {
    pub(super) text: String,
    /// Which lines, from 1, belong to which mutant.
    pub(super) lines: Vec<(Range<usize>, usize)>,
}

/// A function and its mutants by their numbers.
type Mutated<'a> = (&'a Function, Vec<(usize, &'a Mutant)>);

/// Puts mutants of one file, by their numbers, into its text. Functions are numbered by their first mutant.
pub(super) fn switched(text: &str, mutants: &[(usize, &Mutant)]) -> Switched {
    let mut functions: BTreeMap<usize, Mutated<'_>> = BTreeMap::new();
    for (number, mutant) in mutants {
        if let Some(function) = &mutant.function {
            let entry = functions.entry(function.body.start);
            let entry = entry.or_insert_with(|| (function, Vec::new()));
            entry.1.push((*number, *mutant));
        }
    }
    let mut writer = Writer {
        text,
        functions: functions.into_values().collect(),
        done: String::new(),
        lines: Vec::new(),
    };
    writer.range(0..text.len());
    Switched {
        text: writer.done,
        lines: writer.lines,
    }
}

struct Writer<'a> {
    text: &'a str,
    /// By the start of their bodies.
    functions: Vec<Mutated<'a>>,
    done: String,
    lines: Vec<(Range<usize>, usize)>,
}

impl Writer<'_> {
    /// Writes a part of the text, and the functions in it with their mutants.
    fn range(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some(index) = self
            .functions
            .iter()
            .position(|(function, _)| function.body.start >= at && function.body.end <= range.end)
        {
            let (function, mutants) = self.functions.remove(index);
            let header = &self.text[at..function.body.start];
            // A switch cannot be read where constants are computed.
            let signature = function.whole.start.max(at) - at;
            let (before, signature) = header.split_at(signature);
            self.done += before;
            self.done += &signature.replacen("const fn ", "fn ", 1);
            self.function(function, &mutants);
            at = function.body.end;
        }
        self.done += &self.text[at..range.end];
    }

    fn function(&mut self, function: &Function, mutants: &[(usize, &Mutant)]) {
        let Some((first, _)) = mutants.first() else {
            return self.range(function.body.clone());
        };
        // The arms of an opaque type must have one type.
        let opaque = function.return_type.strip_prefix("-> impl ");
        let (open, close) = match opaque {
            Some(bounds) => {
                let _ = write!(self.done, "let boxed: Box<dyn {bounds} + '_> = ");
                ("Box::new({", "})")
            }
            None => ("{", "}"),
        };
        let _ = writeln!(self.done, "match crate::mutants_switch::active({first}) {{");
        for (number, mutant) in mutants {
            let body = &function.body;
            let start = self.line();
            let _ = write!(
                self.done,
                "{number} => {open}\n{}",
                &self.text[body.start..mutant.span.start]
            );
            let _ = write!(self.done, " {} ", mutant.replacement);
            let _ = writeln!(
                self.done,
                "{}\n{close},",
                &self.text[mutant.span.end..body.end]
            );
            self.lines.push((start..self.line(), *number));
        }
        let _ = writeln!(self.done, "_ => {open}");
        self.range(function.body.clone());
        let _ = write!(self.done, "\n{close},\n}}");
        if opaque.is_some() {
            self.done += ";\nboxed";
        }
    }

    fn line(&self) -> usize {
        self.done.matches('\n').count() + 1
    }
}

/// The module that a crate with mutants gets. `count` is one more than the highest number.
pub(super) fn switch(count: usize) -> String {
    SWITCH
        .replace("COUNT", &count.to_string())
        .replace("ACTIVE_VARIABLE", ACTIVE)
        .replace("REACHED_VARIABLE", REACHED)
}

const SWITCH: &str = r#"//! Chooses a mutant.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static SETTINGS: OnceLock<(usize, Option<PathBuf>)> = OnceLock::new();

pub(crate) fn active(function: usize) -> usize {
    let (active, reached) = SETTINGS.get_or_init(|| {
        let active = variable("ACTIVE_VARIABLE").and_then(|number| number.parse().ok());
        (active.unwrap_or(usize::MAX), variable("REACHED_VARIABLE").map(PathBuf::from))
    });
    if let Some(folder) = reached
        && !SEEN[function].swap(true, Ordering::Relaxed)
    {
        let path = folder.join(std::process::id().to_string());
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        if let Ok(mut file) = file {
            let _ = file.write_all(format!("{function}\n").as_bytes());
        }
    }
    *active
}

/// A variable of this process, or of the nearest one above that has it: some processes start with no environment.
fn variable(name: &str) -> Option<String> {
    if let Ok(value) = std::env::var(name) {
        return Some(value);
    }
    let prefix = format!("{name}=");
    let mut process = std::os::unix::process::parent_id();
    while process > 1 {
        let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
        let environment = String::from_utf8_lossy(&environment);
        if let Some(value) = environment.split('\0').find_map(|entry| entry.strip_prefix(&prefix)) {
            return Some(value.to_owned());
        }
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        process = status.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn a(x: u8) -> bool {\n    x < 3\n}\n\nconst fn b() -> u8 {\n    7\n}\n";

    fn mutant(of: &str, to: &str, body: &str, whole: &str) -> Mutant {
        let span = |part: &str| {
            let start = TEXT.find(part).unwrap_or_default();
            start..start + part.len()
        };
        Mutant {
            file: "some.rs".to_owned(),
            name: format!("replace {of} with {to}"),
            span: span(of),
            replacement: to.to_owned(),
            function: Some(Function {
                whole: span(whole),
                body: span(body),
                return_type: String::new(),
            }),
        }
    }

    #[test]
    fn each_mutant_has_an_arm_and_the_lines_of_it() {
        let a = "fn a(x: u8) -> bool {\n    x < 3\n}";
        let mutants = [
            mutant("x < 3", "true", "x < 3", a),
            mutant("<", "==", "x < 3", a),
            mutant("7", "0", "7", "const fn b() -> u8 {\n    7\n}"),
        ];
        let numbered: Vec<_> = mutants.iter().enumerate().collect();
        let Switched { text, lines } = switched(TEXT, &numbered);
        let of = |number: usize| {
            let (range, _) = &lines[number];
            let lines: Vec<&str> = text
                .lines()
                .skip(range.start - 1)
                .take(range.len())
                .collect();
            lines.join("\n")
        };
        assert_eq!(of(0), "0 => {\n true \n},");
        assert_eq!(of(1), "1 => {\nx  ==  3\n},");
        assert_eq!(of(2), "2 => {\n 0 \n},");
        assert!(text.contains("_ => {\nx < 3\n},\n}\n}"), "{text}");
        assert!(
            text.contains("active(2)") && !text.contains("const fn"),
            "{text}"
        );
    }
}

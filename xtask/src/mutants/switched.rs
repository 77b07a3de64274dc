//! A source file with all its mutants in it, of which a switch chooses one when the program runs.
//!
//! The body of each function becomes a `match` with one arm for each mutant, which contains the whole mutated body, and
//! one for the body as it was. So every kind of mutation is expressed in the same way, and a build serves all of them.
//! A constant gets a second one for each mutant, and its uses in functions choose between them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::list::{Constant, Function, Mutant};

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
/// A constant and its mutants by their numbers.
type MutatedConstant<'a> = (&'a Constant, Vec<(usize, &'a Mutant)>);

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
    let mut constants: BTreeMap<&str, MutatedConstant<'_>> = BTreeMap::new();
    for (number, mutant) in mutants {
        if let Some(constant) = &mutant.constant {
            let entry = constants.entry(&constant.name);
            let entry = entry.or_insert_with(|| (constant, Vec::new()));
            entry.1.push((*number, *mutant));
        }
    }
    let mut writer = Writer {
        text,
        functions: functions.into_values().collect(),
        uses: constants
            .values()
            .map(|(constant, mutants)| Use::of(constant, mutants))
            .collect(),
        depth: 0,
        done: String::new(),
        lines: Vec::new(),
    };
    writer.range(0..text.len());
    for (constant, mutants) in constants.values() {
        for (number, mutant) in mutants {
            let start = writer.line();
            let item = &constant.item;
            let before = &text[item.start..mutant.span.start];
            let name = mutated_name(&constant.name, *number);
            let before = before.replacen(&constant.name, &name, 1);
            let after = &text[mutant.span.end..item.end];
            let _ = writeln!(writer.done, "{before} {} {after}", mutant.replacement);
            writer.lines.push((start..writer.line(), *number));
        }
    }
    Switched {
        text: writer.done,
        lines: writer.lines,
    }
}

/// The uses of a constant in functions.
struct Use {
    name: String,
    /// Evaluates to the constant, or to the mutated one that is switched on.
    choice: String,
}

impl Use {
    fn of(constant: &Constant, mutants: &[(usize, &Mutant)]) -> Self {
        let name = &constant.name;
        let first = mutants.first().map_or(0, |(number, _)| *number);
        let mut choice = format!("(match crate::mutants_switch::active({first}) {{ ");
        for (number, _) in mutants {
            let _ = write!(choice, "{number} => {}, ", mutated_name(name, *number));
        }
        let _ = write!(choice, "_ => {name} }})");
        Self {
            name: name.clone(),
            choice,
        }
    }

    /// A part of a function with this constant replaced.
    fn in_part(&self, part: &str) -> String {
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut done = String::new();
        let mut rest = part;
        while let Some(at) = rest.find(&self.name) {
            let (before, found) = rest.split_at(at);
            let after = &found[self.name.len()..];
            done += before;
            if before.ends_with(is_of_name) || after.starts_with(is_of_name) {
                done += &self.name;
            } else {
                done += &self.choice;
            }
            rest = after;
        }
        done + rest
    }
}

fn mutated_name(constant: &str, number: usize) -> String {
    format!("{constant}_{number}")
}

struct Writer<'a> {
    text: &'a str,
    uses: Vec<Use>,
    /// By the start of their bodies.
    functions: Vec<Mutated<'a>>,
    /// How many functions are around the text that is written.
    depth: usize,
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
            let before = if self.depth > 0 {
                self.with_uses(before)
            } else {
                before.to_owned()
            };
            self.done += &before;
            self.done += &signature.replacen("const fn ", "fn ", 1);
            self.function(function, &mutants);
            at = function.body.end;
        }
        let rest = if self.depth > 0 {
            self.body(at..range.end)
        } else {
            self.text[at..range.end].to_owned()
        };
        self.done += &rest;
    }

    /// A part of a function, with constants that can be switched.
    fn body(&self, range: Range<usize>) -> String {
        self.with_uses(&self.text[range])
    }

    fn with_uses(&self, part: &str) -> String {
        let part = part.to_owned();
        self.uses.iter().fold(part, |part, of| of.in_part(&part))
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
            let before = self.body(body.start..mutant.span.start);
            let after = self.body(mutant.span.end..body.end);
            let _ = write!(self.done, "{number} => {open}\n{before}");
            let _ = write!(self.done, " {} ", mutant.replacement);
            let _ = writeln!(self.done, "{after}\n{close},");
            self.lines.push((start..self.line(), *number));
        }
        let _ = writeln!(self.done, "_ => {open}");
        self.depth += 1;
        self.range(function.body.clone());
        self.depth -= 1;
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

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
// The file is opened once: a thread in a sandbox could not open it.
static SETTINGS: OnceLock<(usize, Option<File>)> = OnceLock::new();

pub(crate) fn active(function: usize) -> usize {
    let (active, reached) = SETTINGS.get_or_init(|| {
        let active = variable("ACTIVE_VARIABLE").and_then(|number| number.parse().ok());
        let reached = variable("REACHED_VARIABLE").and_then(|folder| {
            let path = PathBuf::from(folder).join(std::process::id().to_string());
            File::options().create(true).append(true).open(path).ok()
        });
        (active.unwrap_or(usize::MAX), reached)
    });
    if let Some(mut file) = reached.as_ref()
        && !SEEN[function].swap(true, Ordering::Relaxed)
    {
        let _ = file.write_all(format!("{function}\n").as_bytes());
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
            constant: None,
        }
    }

    #[test]
    fn uses_of_a_constant_choose_its_mutant() {
        let text = "const MOST: u8 = 2 * 3;\n\nfn a(x: u8) -> bool {\n    x < MOST && ALMOST\n}\n";
        let span = |part: &str| {
            let start = text.find(part).unwrap_or_default();
            start..start + part.len()
        };
        let mutant = |of: &str, to: &str| Mutant {
            file: "some.rs".to_owned(),
            name: String::new(),
            span: span(of),
            replacement: to.to_owned(),
            function: None,
            constant: None,
        };
        let mut of_constant = mutant("*", "+");
        of_constant.constant = Some(Constant {
            name: "MOST".to_owned(),
            item: span("const MOST: u8 = 2 * 3;"),
        });
        let mut of_function = mutant("<", ">");
        of_function.function = Some(Function {
            whole: span("fn a(x: u8) -> bool {\n    x < MOST && ALMOST\n}"),
            body: span("x < MOST && ALMOST"),
            return_type: String::new(),
        });
        let Switched { text, lines } = switched(text, &[(4, &of_constant), (5, &of_function)]);
        let choice = "(match crate::mutants_switch::active(4) { 4 => MOST_4, _ => MOST })";
        for arm in [
            "const MOST: u8 = 2 * 3;\n".to_owned(),
            format!("5 => {{\nx  >  {choice} && ALMOST\n}},"),
            format!("_ => {{\nx < {choice} && ALMOST\n}},"),
            "\nconst MOST_4: u8 = 2  +  3;\n".to_owned(),
        ] {
            assert!(text.contains(&arm), "{arm}\n{text}");
        }
        assert!(lines.iter().any(|(_, number)| *number == 4));
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

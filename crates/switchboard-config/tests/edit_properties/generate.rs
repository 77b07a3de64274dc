//! Generates random configuration files with the positions of their keys.

use std::ops::Range;

use switchboard_config::format::Format;
use switchboard_config::tree::{Node, Value};

#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) format: Format,
    pub(crate) text: String,
    pub(crate) keys: Vec<Key>,
    /// Tables that can take another key.
    pub(crate) tables: Vec<Table>,
}

/// A key with its lines, including its comments.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) path: Vec<String>,
    pub(crate) lines: Range<usize>,
}

/// A table, and whether adding and removing a key must restore the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) path: Vec<String>,
    pub(crate) exact: bool,
    /// Line number of a single-line table.
    pub(crate) line: Option<usize>,
}

/// A stream of choices; zeros when exhausted, so that shrinking simplifies documents.
#[derive(Debug)]
pub(crate) struct Choices {
    bytes: std::vec::IntoIter<u8>,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into_iter(),
        }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.bytes.next().unwrap_or_default()) % bound
    }

    pub(crate) fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A random value of any type, including odd texts.
    pub(crate) fn value(&mut self, depth: usize) -> Node<'static> {
        const TEXTS: [&str; 8] = [
            "plain",
            "",
            "q\"uo'te\\",
            "two\nlines\r\n",
            "${VAR:-x} %{y}",
            "# no comment // at /* all */",
            "tab\tnul\u{0}del\u{7f}",
            "é漢😀",
        ];
        const KEYS: [&str; 6] = ["A", "B C", "d.e", "f\"g", "", "for"];
        Node::detached(match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::from(self.one(&TEXTS)),
            1 => Value::from(self.one(&[0, -1, 42, 1_000_000_007_i64])),
            2 => Value::from(self.yes()),
            3 => Value::from(self.one(&[0.5, -2.25, 1e20])),
            4 => (0..self.below(4)).map(|_| self.value(0)).collect(),
            _ => {
                let count = self.below(4);
                let members = KEYS.into_iter().skip(self.below(3)).take(count);
                let members: Vec<_> = members.map(|key| (key, self.value(depth - 1))).collect();
                return Node::table(members);
            }
        })
    }
}

const NAMES: [&str; 8] = ["a", "b-c", "d.e", "f g", "é", "q\"x", "", "h\\i"];
const FIELDS: [&str; 5] = ["command", "args", "url", "cwd", "enabled"];

struct Writer<'c> {
    choices: &'c mut Choices,
    format: Format,
    lines: Vec<String>,
    keys: Vec<Key>,
    tables: Vec<Table>,
    unit: &'static str,
    comments: usize,
}

pub(crate) fn document(format: Format, choices: &mut Choices) -> Document {
    let mark = if choices.yes() { "\u{feff}" } else { "" };
    let newline = choices.one(&["\n", "\r\n"]);
    let ends = choices.below(4) != 3;
    let unit = choices.one(&["  ", "    ", "\t"]);
    let mut writer = Writer {
        choices,
        format,
        lines: Vec::new(),
        keys: Vec::new(),
        tables: Vec::new(),
        unit,
        comments: 0,
    };
    match format {
        Format::Toml => writer.toml(),
        Format::Json => writer.json(),
        _ => writer.hcl(),
    }
    let Writer {
        lines,
        keys,
        tables,
        ..
    } = writer;
    // A multi-line value was written with plain line feeds.
    let mut text = lines.join("\n").replace('\n', newline);
    if ends && !text.is_empty() {
        text.push_str(newline);
    }
    Document {
        format,
        text: format!("{mark}{text}"),
        keys,
        tables,
    }
}

impl Writer<'_> {
    fn toml(&mut self) {
        self.floating("");
        for key in ["title", "a b", "last"]
            .into_iter()
            .take(self.choices.below(4))
        {
            self.statement(&[key], &[], "");
        }
        if self.choices.yes() {
            let start = self.lines.len();
            self.owned("");
            let value = self.plain();
            self.push(&format!("mcp_servers.dotted.url = {value}"));
            self.key(&["mcp_servers", "dotted", "url"], start);
            self.key(&["mcp_servers", "dotted"], start);
            self.table(&["mcp_servers", "dotted"], true);
        }
        self.table(&[], self.lines.iter().any(|line| line.contains('=')));
        self.separate();
        let dotted = self
            .keys
            .iter()
            .any(|key| key.path.first().is_some_and(|key| key == "mcp_servers"));
        let servers = self.choices.below(4);
        for name in NAMES.into_iter().take(servers) {
            let indent = self.choices.one(&["", "", "  "]);
            let start = self.lines.len();
            self.owned(indent);
            let comment = self.trailing();
            self.push(&format!("{indent}[mcp_servers.{}]{comment}", quoted(name)));
            for field in FIELDS.into_iter().take(self.choices.below(5)) {
                self.statement(&[field], &["mcp_servers", name], indent);
            }
            self.table(&["mcp_servers", name], true);
            if self.choices.below(3) == 2 {
                self.separate();
                let start = self.lines.len();
                self.owned("");
                self.push(&format!("[mcp_servers.{}.env]", quoted(name)));
                self.statement(&["A.B"], &["mcp_servers", name, "env"], "");
                self.key(&["mcp_servers", name, "env"], start);
                self.table(&["mcp_servers", name, "env"], true);
            } else if self.choices.below(4) == 3 {
                self.comment("");
                self.key(&["mcp_servers", name], start);
                self.push("");
                continue;
            }
            self.key(&["mcp_servers", name], start);
            self.separate();
        }
        self.table(&["mcp_servers"], servers > 0 || dotted);
        if self.choices.yes() {
            let start = self.lines.len();
            self.push("[security]");
            self.statement(&["mcp_server_denylist"], &["security"], "");
            self.key(&["security"], start);
            self.table(&["security"], true);
            self.separate();
        }
    }

    fn json(&mut self) {
        if self.choices.yes() {
            self.comment("");
        }
        if self.choices.below(5) == 4 {
            self.push("{\"mcpServers\":{\"a\":{\"url\":\"u\"},\"b\":{}}}");
            let last = self.lines.len() - 1;
            for path in [
                &["mcpServers"][..],
                &["mcpServers", "a"],
                &["mcpServers", "b"],
            ] {
                self.key(path, last);
            }
            self.line_table(&[]);
            self.line_table(&["mcpServers"]);
            return self.line_table(&["mcpServers", "a"]);
        }
        self.push("{");
        let unit = self.unit;
        self.floating(unit);
        let comma = if self.choices.yes() { "," } else { "" };
        let members = self.choices.below(3);
        for index in 0..=members {
            let end = if index == members { comma } else { "," };
            if index == 1 {
                self.json_servers(unit, end);
            } else {
                let start = self.lines.len();
                self.owned(unit);
                let value = self.json_plain(unit);
                let comment = self.trailing();
                let key = format!("other{index}");
                self.push(&format!("{unit}\"{key}\": {value}{end}{comment}"));
                self.key(&[&key], start);
            }
            self.blank_lines();
        }
        self.push("}");
        self.table(&[], true);
        if members == 0 {
            self.table(&["mcpServers"], false);
        }
    }

    fn json_servers(&mut self, unit: &str, end: &str) {
        let inner = unit.repeat(2);
        let start = self.lines.len();
        self.owned(unit);
        let comment = self.trailing();
        self.push(&format!("{unit}\"mcpServers\": {{{comment}"));
        self.floating(&inner);
        let comma = if self.choices.yes() { "," } else { "" };
        let servers = self.choices.below(4);
        for (index, name) in NAMES.into_iter().take(servers).enumerate() {
            let end = if index + 1 == servers { comma } else { "," };
            let path = ["mcpServers", name];
            let start = self.lines.len();
            self.owned(&inner);
            if self.choices.yes() {
                let comment = self.trailing();
                let name = quoted(name);
                self.push(&format!(
                    "{inner}{name}: {{ \"command\": \"x\", \"n\" : [1, 2] }}{end}{comment}"
                ));
                self.key(&["mcpServers", path[1], "n"], self.lines.len() - 1);
                self.line_table(&path);
            } else {
                self.json_server(&path, &inner, end);
            }
            self.key(&path, start);
            self.blank_lines();
        }
        if self.choices.below(4) == 3 {
            self.floating(&inner);
        }
        self.push(&format!("{unit}}}{end}"));
        self.key(&["mcpServers"], start);
        self.table(&["mcpServers"], servers > 0);
    }

    fn json_server(&mut self, path: &[&str; 2], indent: &str, end: &str) {
        let inner = format!("{indent}{}", self.unit);
        self.push(&format!("{indent}{}: {{", quoted(path[1])));
        let count = self.choices.below(4);
        for (index, field) in FIELDS.into_iter().take(count).enumerate() {
            let end = if index + 1 == count { "" } else { "," };
            let start = self.lines.len();
            self.owned(&inner);
            let value = self.json_plain(&inner);
            let comment = self.trailing();
            self.push(&format!("{inner}\"{field}\" : {value}{end}{comment}"));
            self.key(&[path[0], path[1], field], start);
            self.blank_lines();
        }
        let comment = self.trailing();
        self.push(&format!("{indent}}}{end}{comment}"));
        self.table(path, count > 0);
    }

    fn hcl(&mut self) {
        self.floating("");
        for key in ["title", "mode"].into_iter().take(self.choices.below(3)) {
            self.statement(&[key], &[], "");
        }
        self.table(&[], true);
        self.separate();
        let servers = self.choices.below(4);
        let unit = self.unit;
        for name in NAMES.into_iter().take(servers) {
            let start = self.lines.len();
            self.owned("");
            let path = ["mcp_servers", name];
            let comment = self.trailing();
            match self.choices.below(3) {
                0 => self.push(&format!("mcp_servers {} {{{comment}", quoted(name))),
                1 => {
                    self.push(&format!("mcp_servers {{{comment}"));
                    self.push(&format!("{unit}name = {}", quoted(name)));
                }
                _ => {
                    self.push(&format!(
                        "mcp_servers {} {{ url = \"u\" }}{comment}",
                        quoted(name)
                    ));
                    self.key(&path, start);
                    self.table(&path, false);
                    self.separate();
                    continue;
                }
            }
            for field in FIELDS.into_iter().take(self.choices.below(5)) {
                self.statement(&[field], &path, unit);
            }
            if self.choices.yes() {
                self.hcl_env(&path, unit);
            }
            self.push("}");
            self.key(&path, start);
            self.table(&path, true);
            self.separate();
        }
        self.table(&["mcp_servers"], true);
    }

    fn hcl_env(&mut self, path: &[&str; 2], unit: &str) {
        let inner = unit.repeat(2);
        let env = [path[0], path[1], "env"];
        let start = self.lines.len();
        self.owned(unit);
        let (assign, comma) = self.choices.one(&[(" ", ""), (" = ", ""), (" = ", ",")]);
        self.push(&format!("{unit}env{assign}{{"));
        let count = 1 + self.choices.below(3);
        for (index, key) in ["A", "B_C", "D"].into_iter().take(count).enumerate() {
            let comma = if index + 1 == count { "" } else { comma };
            let start = self.lines.len();
            self.owned(&inner);
            let comment = self.trailing();
            self.push(&format!(
                "{inner}{key} = \"${{X:-{index}}}\"{comma}{comment}"
            ));
            self.key(&[path[0], path[1], "env", key], start);
        }
        self.push(&format!("{unit}}}"));
        self.key(&env, start);
        self.table(&env, true);
    }

    /// `key = value`, with comments.
    fn statement(&mut self, key: &[&str; 1], parent: &[&str], indent: &str) {
        let start = self.lines.len();
        self.owned(indent);
        let value = match self.format {
            Format::Toml => self.toml_value(indent),
            _ => self.hcl_value(indent),
        };
        let heredoc = value.starts_with("<<");
        let comment = if heredoc {
            String::new()
        } else {
            self.trailing()
        };
        let assign = self.choices.one(&[" = ", "=", "  =  "]);
        let name = match self.format {
            Format::Toml if key[0].contains([' ', '.']) => quoted(key[0]),
            _ => key[0].to_owned(),
        };
        self.push(&format!("{indent}{name}{assign}{value}{comment}"));
        let path: Vec<_> = parent.iter().chain(key).copied().collect();
        self.key(&path, start);
        if self.choices.below(5) == 4 {
            self.blank_lines();
            self.floating(indent);
        }
    }

    fn plain(&mut self) -> &'static str {
        self.choices.one(&["\"x\"", "1", "true", "[1, 2]"])
    }

    fn toml_value(&mut self, indent: &str) -> String {
        match self.choices.below(10) {
            0 => "\"# no comment\"".to_owned(),
            1 => "'lit\"eral'".to_owned(),
            2 => "0x1F".to_owned(),
            3 => "1_000".to_owned(),
            4 => "1e3".to_owned(),
            5 => format!("[\n{indent}  1, # one\n{indent}  2,\n{indent}]"),
            6 => "{ A = 1, \"B c\" = 'x' }".to_owned(),
            7 => "\"\"\"\n# two\n\n[lines]\"\"\"".to_owned(),
            8 => "1979-05-27".to_owned(),
            _ => "false".to_owned(),
        }
    }

    fn hcl_value(&mut self, indent: &str) -> String {
        match self.choices.below(8) {
            0 => "\"// no comment ${VAR:-x}\"".to_owned(),
            1 => "-5".to_owned(),
            2 => "1.50".to_owned(),
            3 => format!("[\n{indent}  1, # one\n{indent}  2,\n{indent}]"),
            4 => "{ A = 1, \"B c\" = \"x\" }".to_owned(),
            5 => "env(\"X\")".to_owned(),
            6 => "<<EOT\n# not a comment\n}\nEOT".to_owned(),
            _ => "true".to_owned(),
        }
    }

    fn json_plain(&mut self, indent: &str) -> String {
        match self.choices.below(7) {
            0 => "\"// no \\\" comment\"".to_owned(),
            1 => "1.50".to_owned(),
            2 => "1E3".to_owned(),
            3 => "null".to_owned(),
            4 => format!("[\n{indent}  1, // one\n{indent}  2\n{indent}]"),
            5 => "{ \"A\": {}, \"B\": [] }".to_owned(),
            _ => "false".to_owned(),
        }
    }

    fn push(&mut self, line: &str) {
        // Count lines of the text, also within multi-line values.
        self.lines.extend(line.split('\n').map(str::to_owned));
    }

    fn key(&mut self, path: &[&str], start: usize) {
        self.keys.push(Key {
            path: path.iter().map(ToString::to_string).collect(),
            lines: start..self.lines.len(),
        });
    }

    fn table(&mut self, path: &[&str], exact: bool) {
        self.tables.push(Table {
            path: path.iter().map(ToString::to_string).collect(),
            exact,
            line: None,
        });
    }

    /// A table on the last written line.
    fn line_table(&mut self, path: &[&str]) {
        self.table(path, true);
        if let Some(table) = self.tables.last_mut() {
            table.line = Some(self.lines.len() - 1);
        }
    }

    fn comment(&mut self, indent: &str) {
        self.comments += 1;
        let number = self.comments;
        let comment = match (self.format, self.choices.below(3)) {
            (Format::Toml, _) | (Format::Hcl, 0) => format!("# comment {number}"),
            (_, 1) => format!("/* comment {number},\n{indent}   \"a\": = {{ */"),
            _ => format!("// comment {number}"),
        };
        self.push(&format!("{indent}{comment}"));
    }

    /// Comments that belong to the next key.
    fn owned(&mut self, indent: &str) {
        for _ in 0..self.choices.below(4).saturating_sub(1) {
            self.comment(indent);
        }
    }

    /// Comments that belong to no key.
    fn floating(&mut self, indent: &str) {
        if self.choices.below(3) == 2 {
            // At the start of the file no previous item can claim them.
            if !self.lines.is_empty() && self.choices.yes() {
                self.push("");
            }
            self.comment(indent);
            self.push("");
        }
    }

    fn trailing(&mut self) -> String {
        if self.choices.below(3) < 2 {
            return String::new();
        }
        self.comments += 1;
        match self.format {
            Format::Json => format!(" // comment {}", self.comments),
            _ => format!(" # comment {}", self.comments),
        }
    }

    fn blank_lines(&mut self) {
        for _ in 0..self.choices.below(4).saturating_sub(1) {
            self.push("");
        }
    }

    /// Blank lines, sometimes with a comment in between, or nothing.
    fn separate(&mut self) {
        match self.choices.below(5) {
            0 | 1 => self.push(""),
            2 => {
                self.push("");
                self.comment("");
                self.push("");
            }
            3 => self.blank_lines(),
            _ => {}
        }
    }
}

/// A quoted text that all three formats can read.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

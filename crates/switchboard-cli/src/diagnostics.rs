//! Writes the program's own diagnostics from `tracing` to standard error. Off unless `SWITCHBOARD_LOG` is set.
//!
//! Only Switchboard's own events are written: those of libraries may contain URLs with keys, headers or whole messages.
//! Nothing goes to standard output.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::SystemTime;
use switchboard_config::sort;

use switchboard_config::mask;
use switchboard_config::text::visible;
use switchboard_store::Timestamp;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::time;

/// The valid values, for error messages.
pub(crate) const WORDS: &str =
    "error, warn, info, debug, trace or off, or switchboard::manager=debug for one part";

/// Enables diagnostics according to the variable's value. Returns the directives that could not be parsed.
pub(crate) fn init(value: &OsStr) -> Vec<String> {
    let (filter, unreadable) = Filter::parse(&value.to_string_lossy());
    if filter.max_level() != LevelFilter::OFF {
        // Nothing else in this program sets a subscriber.
        let _ = tracing::subscriber::set_global_default(Diagnostics(filter));
    }
    unreadable
}

/// Maximum level for all of Switchboard, or by module prefix.
#[derive(Debug, PartialEq, Eq)]
struct Filter {
    /// Longest prefix first, so that the first match is the most specific.
    parts: Vec<(String, LevelFilter)>,
}

/// Prefix of the targets of Switchboard's own crates.
const OWN_PREFIX: &str = "switchboard";

impl Filter {
    /// Parses `LEVEL` and `PART=LEVEL`, separated by commas.
    fn parse(text: &str) -> (Self, Vec<String>) {
        let mut parts = Vec::new();
        let mut unreadable = Vec::new();
        let words = text.split(',').map(str::trim);
        for word in words.filter(|word| !word.is_empty()) {
            let (part, level) = word.split_once('=').unwrap_or((OWN_PREFIX, word));
            let level = level.trim();
            // `LevelFilter` also parses numbers and the empty string, which we reject.
            let is_word = level.starts_with(char::is_alphabetic);
            match level.parse() {
                Ok(level) if is_word && part.starts_with(OWN_PREFIX) => {
                    parts.push((part.trim().to_owned(), level));
                }
                _ => unreadable.push(word.to_owned()),
            }
        }
        sort::by_key(&mut parts, |(part, _)| std::cmp::Reverse(part.len()));
        (Self { parts }, unreadable)
    }

    /// The highest level of any part.
    fn max_level(&self) -> LevelFilter {
        let levels = self.parts.iter().map(|(_, level)| *level);
        levels.max().unwrap_or(LevelFilter::OFF)
    }

    fn level_of(&self, target: &str) -> LevelFilter {
        let fits = |part: &str| {
            let rest = target.strip_prefix(part);
            // `switchboard` matches every crate of the program; any other part matches one module and its children.
            rest.is_some_and(|rest| part == OWN_PREFIX || rest.is_empty() || rest.starts_with("::"))
        };
        let found = self.parts.iter().find(|(part, _)| fits(part));
        found.map_or(LevelFilter::OFF, |(_, level)| *level)
    }
}

/// Writes the events that pass the filter. This program uses no spans.
struct Diagnostics(Filter);

impl Subscriber for Diagnostics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.0.level_of(metadata.target())
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // The filter never changes, so each call site is evaluated once.
        if self.enabled(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0.max_level())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line::default();
        event.record(&mut line);
        let now = time::exact(Timestamp::from(SystemTime::now()));
        let (level, target) = (metadata.level(), metadata.target());
        let text = format!("{now} {level:>5} {target}: {}{}", line.message, line.fields);
        // One write per line, so that lines of several processes do not mix. A failed write cannot be reported.
        let line = format!("{}\n", visible(&mask::message(&text)));
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message and fields of an event.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }
}

impl Line {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.fields, " {name}={value}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_lets_through_what_it_names() {
        let check = |text: &str, target: &str, expected: LevelFilter| {
            let (filter, unreadable) = Filter::parse(text);
            assert_eq!(
                (filter.level_of(target), unreadable.len()),
                (expected, 0),
                "{text}: {target}"
            );
        };
        check("debug", "switchboard::manager", LevelFilter::DEBUG);
        check("debug", "switchboard_agent::turn", LevelFilter::DEBUG);
        check("WARN", "switchboard", LevelFilter::WARN);
        check("", "switchboard", LevelFilter::OFF);
        check("off", "switchboard", LevelFilter::OFF);
        // Library events are never written, at any level.
        check("trace", "hyper_util::client", LevelFilter::OFF);
        let parts = "info, switchboard::manager=trace,switchboard::manager::idle=off";
        check(parts, "switchboard::manager::lists", LevelFilter::TRACE);
        check(parts, "switchboard::manager::idle", LevelFilter::OFF);
        check(parts, "switchboard::managers", LevelFilter::INFO);
        check(parts, "switchboard_server::http", LevelFilter::INFO);
    }

    #[test]
    fn invalid_directives_are_returned_and_the_rest_applies() {
        let (filter, unreadable) = Filter::parse("loud,hyper=trace,3,switchboard=,warn");
        assert_eq!(unreadable, ["loud", "hyper=trace", "3", "switchboard="]);
        assert_eq!(filter.level_of("switchboard::host"), LevelFilter::WARN);
    }
}

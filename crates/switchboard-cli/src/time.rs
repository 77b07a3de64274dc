//! Moments: in local time for people, in UTC for scripts.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo};
use switchboard_store::Timestamp;

use crate::environment;

/// A moment for people, in local time: `2026-11-16 01:32:04`.
pub(crate) fn shown(at: Timestamp) -> String {
    shown_in(at, environment::time_zone())
}

fn shown_in(at: Timestamp, zone: TimeZone) -> String {
    let local = moment(at).to_zoned(zone);
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A moment for scripts: `2026-11-16T01:32:04.125Z`.
pub(crate) fn exact(at: Timestamp) -> String {
    format!("{:.3}", moment(at))
}

/// Now, for names of files: `20261116T013204Z`.
pub(crate) fn compact_now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string()
}

/// The closest moment of the years from -9999 to 9999.
fn moment(at: Timestamp) -> jiff::Timestamp {
    let limit = match at.as_millis() {
        ..0 => jiff::Timestamp::MIN,
        _ => jiff::Timestamp::MAX,
    };
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(limit)
}

/// A day, or a moment in the form of [`shown`] or [`exact`], with or without seconds, parts of a second and a zone;
/// local time without one.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    parse_in(text, environment::time_zone())
}

fn parse_in(text: &str, zone: TimeZone) -> Option<Timestamp> {
    let moment = text.parse().ok().or_else(|| {
        // This also parses text with the name of a zone, and would ignore it.
        let local: DateTime = text.parse().ok().filter(|_| !text.contains('['))?;
        Some(local.to_zoned(zone).ok()?.timestamp())
    });
    moment.map(|at: jiff::Timestamp| Timestamp::from_millis(at.as_millisecond()))
}

/// A length of time such as `90s`, `30m`, `1h 30m` or `7d`, in units up to weeks.
pub(crate) fn length(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    Some(length.ok()?.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let check = |text: &str, expected: Option<i64>| {
            let found = parse_in(text, TimeZone::UTC).map(Timestamp::as_millis);
            assert_eq!(found, expected, "{text}");
        };
        check("1970-01-01", Some(0));
        check("1970-01-01T00:00:00.001Z", Some(1));
        check("2026-11-16T01:32:04Z", Some(1_794_792_724_000));
        check("2026-11-16 01:32", Some(1_794_792_720_000));
        check("2024-02-29", Some(1_709_164_800_000));
        check("1969-12-31", Some(-86_400_000));
        check("2026-11-16T03:32:04+02:00", Some(1_794_792_724_000));
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-1-1",
            "2026-01-01T25:00",
            "2026-01-01T",
            "2026-01-01T01:02:03.",
            "2026-01-01-01",
            "+026-01-01",
            "2026-11-16T01:32:04[Europe/Berlin]",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn moments_are_written_for_people_and_scripts() {
        let check = |millis: i64, expected: &str| {
            assert_eq!(exact(Timestamp::from_millis(millis)), expected);
        };
        check(1_794_792_724_125, "2026-11-16T01:32:04.125Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        check(i64::MAX, "9999-12-30T22:00:00.999Z");
        let at = Timestamp::from_millis(1_794_792_724_125);
        assert_eq!(shown_in(at, TimeZone::UTC), "2026-11-16 01:32:04");
    }

    #[test]
    fn people_read_and_write_local_time() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = Timestamp::from_millis(1_794_792_724_000);
        assert_eq!(shown_in(at, zone.clone()), "2026-11-16 03:32:04");
        assert_eq!(parse_in("2026-11-16 03:32:04", zone.clone()), Some(at));
        assert_eq!(parse_in("2026-11-16T01:32:04Z", zone), Some(at));
    }

    #[test]
    fn lengths_have_a_unit() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(length(text), seconds.map(Duration::from_secs), "{text}");
        };
        check("90s", Some(90));
        check("30m", Some(1800));
        check("1h 30m", Some(5400));
        check("7d", Some(7 * 86_400));
        check("2w", Some(14 * 86_400));
        for text in ["", "7", "d", "1mo", "1y", "5x", "soon"] {
            check(text, None);
        }
    }
}
